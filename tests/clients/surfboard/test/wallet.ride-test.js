// A test as surfboard's users write them: all names come from @waves/js-test-env.

const wvs = 10 ** 8;

describe("wallet", async function () {
  this.timeout(100000);

  before(async function () {
    await setupAccounts({ alice: wvs, bob: 2 * wvs, wallet: 0.05 * wvs });
    const script = compile(file("wallet.ride"));
    const tx = setScript({ script }, accounts.wallet);
    await broadcast(tx);
    await waitForTx(tx.id);
  });

  const call = (name, args, payment, seed) => invokeScript(
    { dApp: address(accounts.wallet), call: { function: name, args }, payment }, seed);

  it("keeps money", async function () {
    const first = call("deposit", [], [{ assetId: null, amount: 0.7 * wvs }], accounts.alice);
    const second = call("deposit", [], [{ assetId: null, amount: 0.8 * wvs }], accounts.bob);
    await broadcast(first);
    await broadcast(second);
    await waitForTx(first.id);
    await waitForTx(second.id);
    const kept = await accountDataByKey(address(accounts.bob), address(accounts.wallet));
    expect(kept.value).to.equal(0.8 * wvs);
    const changes = await stateChanges(first.id);
    expect(changes.data[0].value).to.equal(0.7 * wvs);
  });

  it("does not give more than there is", async function () {
    const tx = call("withdraw", [{ type: "integer", value: wvs }], [], accounts.alice);
    await expect(broadcast(tx)).to.be.rejectedWith("not enough balance");
  });

  it("gives back", async function () {
    const before = await balance(address(accounts.alice));
    const tx = call("withdraw", [{ type: "integer", value: 0.5 * wvs }], [], accounts.alice);
    await broadcast(tx);
    await waitForTx(tx.id);
    const after = await balance(address(accounts.alice));
    expect(after - before).to.equal(0.5 * wvs - tx.fee);
    const info = await transactionById(tx.id);
    expect(info.applicationStatus).to.equal("succeeded");
    expect(await currentHeight()).to.be.at.least(info.height);
  });
});
