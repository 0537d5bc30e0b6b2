-- What the export needs besides the ecosystem's schema.

-- Which chain this is, and what is known about its last block here.
CREATE TABLE soliton_export (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    network varchar NOT NULL,
    chain_id smallint NOT NULL,
    -- Of the last block what does not change as it grows: with microblocks its id does.
    block_key varchar
);

-- The lease that was cancelled, also where a script had made it and no transaction has its row.
ALTER TABLE txs_9 ADD COLUMN lease_id varchar;
CREATE INDEX ON txs_9 (lease_tx_uid);

-- Types that the ecosystem's schema does not know.
CREATE TABLE txs_other (body jsonb NOT NULL) INHERITS (txs);
ALTER TABLE txs_other ADD PRIMARY KEY (uid);
ALTER TABLE txs_other ADD FOREIGN KEY (block_uid) REFERENCES blocks_microblocks (uid)
    ON DELETE CASCADE;
CREATE INDEX ON txs_other (sender, uid);
CREATE INDEX ON txs_other USING hash (id);
CREATE INDEX ON txs_other (time_stamp, uid);
CREATE INDEX ON txs_other (height);
CREATE INDEX ON txs_other (block_uid);

-- The price of a trade in the old scale, where prices hold the decimals of both assets.
CREATE FUNCTION soliton_price(
    price bigint, version smallint, amount_decimals smallint, price_decimals smallint
) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN version > 2 THEN trim_scale(
            price * power(10::numeric, price_decimals) / power(10::numeric, amount_decimals))
        ELSE price::numeric
    END
$$;
