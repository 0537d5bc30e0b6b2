import com.fasterxml.jackson.databind.ObjectMapper;
import com.wavesplatform.transactions.BurnTransaction;
import com.wavesplatform.transactions.CreateAliasTransaction;
import com.wavesplatform.transactions.DataTransaction;
import com.wavesplatform.transactions.ExchangeTransaction;
import com.wavesplatform.transactions.InvokeScriptTransaction;
import com.wavesplatform.transactions.IssueTransaction;
import com.wavesplatform.transactions.LeaseCancelTransaction;
import com.wavesplatform.transactions.LeaseTransaction;
import com.wavesplatform.transactions.MassTransferTransaction;
import com.wavesplatform.transactions.ReissueTransaction;
import com.wavesplatform.transactions.SetAssetScriptTransaction;
import com.wavesplatform.transactions.SetScriptTransaction;
import com.wavesplatform.transactions.SponsorFeeTransaction;
import com.wavesplatform.transactions.Transaction;
import com.wavesplatform.transactions.TransactionOrOrder;
import com.wavesplatform.transactions.TransferTransaction;
import com.wavesplatform.transactions.UpdateAssetInfoTransaction;
import com.wavesplatform.transactions.account.Address;
import com.wavesplatform.transactions.account.PrivateKey;
import com.wavesplatform.transactions.common.Alias;
import com.wavesplatform.transactions.common.Amount;
import com.wavesplatform.transactions.common.AssetId;
import com.wavesplatform.transactions.common.Id;
import com.wavesplatform.transactions.data.BinaryEntry;
import com.wavesplatform.transactions.data.BooleanEntry;
import com.wavesplatform.transactions.data.DeleteEntry;
import com.wavesplatform.transactions.data.IntegerEntry;
import com.wavesplatform.transactions.data.StringEntry;
import com.wavesplatform.transactions.exchange.Order;
import com.wavesplatform.transactions.invocation.Function;
import com.wavesplatform.transactions.invocation.IntegerArg;
import com.wavesplatform.transactions.mass.Transfer;
import com.wavesplatform.wavesj.Block;
import com.wavesplatform.wavesj.Node;
import com.wavesplatform.wavesj.exceptions.NodeException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * What WavesJ makes of a node: {@code java Walk URL}.
 *
 * <p>Every method of the library's node is called, on the chain that the program itself fills. It
 * prints one JSON object per line, as the scripts for node do.
 */
public final class Walk {
  private static final int DEPTH = 6;
  private static final long COIN = 100_000_000L;
  private static final String DAPP =
      "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"
          + "@Callable(i)\nfunc keep(n: Int) = [IntegerEntry(\"kept\", n + n)]\n";
  private static final String ASSET =
      "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n{-# SCRIPT_TYPE ASSET #-}\ntrue\n";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Node node;
  private final PrivateKey owner = PrivateKey.fromSeed("soliton devnet account 1");
  private final PrivateKey friend = PrivateKey.fromSeed("soliton devnet account 2");
  private final PrivateKey dapp = PrivateKey.fromSeed("soliton devnet account 3");
  private final Set<String> called = new LinkedHashSet<>();

  private Walk(String url) throws Exception {
    node = new Node(url);
  }

  /** A call of the library. */
  private interface Call {
    Object make() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    Walk walk = new Walk(arguments[0]);
    walk.accounts();
    AssetId gold = walk.assets();
    walk.leasesAndNames();
    walk.scripts();
    walk.exchange(gold);
    walk.blocks();
    walk.refusals();
    Set<String> all = new TreeSet<>();
    for (Method method : Node.class.getDeclaredMethods()) {
      if (Modifier.isPublic(method.getModifiers())) {
        all.add(method.getName());
      }
    }
    tell("methods", Map.of("all", all, "called", walk.called));
  }

  // --- what is told ------------------------------------------------------------------------------

  private static void tell(String name, Object value) throws Exception {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("name", name);
    line.put("value", plain(value, DEPTH));
    System.out.println(JSON.writeValueAsString(line));
  }

  /** A value of the library as numbers, strings, lists and maps. */
  private static Object plain(Object value, int depth) throws Exception {
    if (value == null || value instanceof Number || value instanceof Boolean) {
      return value;
    }
    if (value instanceof TransactionOrOrder) {
      return JSON.readTree(((TransactionOrOrder) value).toJson());
    }
    if (value instanceof Iterable) {
      List<Object> items = new ArrayList<>();
      for (Object each : (Iterable<?>) value) {
        items.add(plain(each, depth - 1));
      }
      return items;
    }
    if (value instanceof Map) {
      Map<String, Object> members = new LinkedHashMap<>();
      for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
        members.put(String.valueOf(each.getKey()), plain(each.getValue(), depth - 1));
      }
      return members;
    }
    if (depth == 0 || !value.getClass().getName().startsWith("com.wavesplatform.wavesj")
        || value instanceof Enum) {
      return value.toString();
    }
    Map<String, Object> members = new LinkedHashMap<>();
    for (Method method : value.getClass().getMethods()) {
      boolean reads = method.getParameterCount() == 0 && !Modifier.isStatic(method.getModifiers());
      if (reads && method.getDeclaringClass() != Object.class
          && !Set.of("hashCode", "toString").contains(method.getName())) {
        members.put(method.getName(), plain(method.invoke(value), depth - 1));
      }
    }
    return members;
  }

  /** Make a call of a method of the node and tell what came of it. */
  private void call(String method, Call call) throws Exception {
    call(method, method, call);
  }

  private void call(String name, String method, Call call) throws Exception {
    called.add(method);
    tell(name, outcome(call));
  }

  private static Object outcome(Call call) throws Exception {
    try {
      return call.make();
    } catch (NodeException error) {
      return Map.of("error", error.getErrorCode(), "message", error.getMessage());
    } catch (Exception error) {
      return Map.of("unreadable", String.valueOf(error.getMessage()));
    }
  }

  /** Send a transaction, wait until it is in the chain, and tell both forms. */
  private <T extends Transaction> T put(String name, T signed) throws Exception {
    called.add("broadcast");
    T sent = node.broadcast(signed);
    Object info = null;
    for (int tries = 0; info == null && tries < 1_000; tries++) {
      try {
        info = node.getTransactionInfo(sent.id());
      } catch (NodeException error) {
        Thread.sleep(10);
      }
    }
    Map<String, Object> both = new LinkedHashMap<>();
    both.put("sent", sent);
    both.put("info", info);
    tell(name, both);
    return signed;
  }

  // --- the walk ----------------------------------------------------------------------------------

  private Address of(PrivateKey key) {
    return key.address(node.chainId());
  }

  private void accounts() throws Exception {
    Address address = of(owner);
    tell("addresses", List.of(address, of(friend), of(dapp)));
    call("chainId", node::chainId);
    call("uri", node::uri);
    call("client", () -> node.client() != null);
    call("getAddresses", node::getAddresses);
    call("some addresses", "getAddresses", () -> node.getAddresses(0, 1));
    call("getVersion", node::getVersion);
    call("getBalance", () -> node.getBalance(address));
    call("confirmed balance", "getBalance", () -> node.getBalance(address, 1));
    call("getBalances", () -> node.getBalances(List.of(address, of(friend))));
    call("balances at", "getBalances", () -> node.getBalances(List.of(address), 1));
    call("getBalanceDetails", () -> node.getBalanceDetails(address));
    call("getEffectiveBalance", () -> node.getEffectiveBalance(address));
    call("confirmed effective", "getEffectiveBalance", () -> node.getEffectiveBalance(address, 1));
    put("transfer", TransferTransaction.builder(of(friend), Amount.of(5)).getSignedWith(owner));
    put("mass transfer", MassTransferTransaction.builder(Transfer.to(of(friend), 1),
        Transfer.to(of(dapp), 2)).getSignedWith(owner));
    put("data", DataTransaction.builder(IntegerEntry.as("integer", 42),
        BooleanEntry.as("boolean", true), StringEntry.as("string", "grüße"),
        BinaryEntry.as("binary", new byte[] {1, 2})).getSignedWith(owner));
    put("deletion", DataTransaction.builder(DeleteEntry.as("boolean")).getSignedWith(owner));
    call("getData", () -> entries(node.getData(address)));
    call("data of keys", "getData", () -> entries(node.getData(address, List.of("string"))));
    call("data that matches", "getData",
        () -> entries(node.getData(address, Pattern.compile("int.*"))));
    call("one entry", "getData", () -> node.getData(address, "integer").valueAsObject());
    call("getBalanceHistory", () -> node.getBalanceHistory(address));
  }

  /** Wait for a block above a height; chains that mine when there is something to do get it. */
  private void above(int height) throws Exception {
    for (long amount = 1; node.getHeight() <= height; amount++) {
      node.broadcast(TransferTransaction.builder(of(dapp), Amount.of(amount)).getSignedWith(friend));
      Thread.sleep(50);
    }
  }

  private static Map<String, Object> entries(
      List<com.wavesplatform.transactions.data.DataEntry> entries) {
    Map<String, Object> found = new LinkedHashMap<>();
    for (com.wavesplatform.transactions.data.DataEntry each : entries) {
      found.put(each.key(), String.valueOf(each.valueAsObject()));
    }
    return found;
  }

  private AssetId assets() throws Exception {
    Address address = of(owner);
    AssetId gold = put("issue", IssueTransaction.builder("Gold", 1_000, 2).description("bars")
        .isReissuable(true).getSignedWith(owner)).assetId();
    AssetId nft = put("issue nft", IssueTransaction.builderNFT("Painting").getSignedWith(owner))
        .assetId();
    put("issue another nft", IssueTransaction.builderNFT("Drawing").getSignedWith(owner));
    put("transfer of an asset",
        TransferTransaction.builder(of(friend), Amount.of(40, gold)).getSignedWith(owner));
    put("reissue", ReissueTransaction.builder(Amount.of(10, gold)).getSignedWith(owner));
    put("burn", BurnTransaction.builder(Amount.of(4, gold)).getSignedWith(owner));
    put("sponsor", SponsorFeeTransaction.builder(gold, 3).getSignedWith(owner));
    above(node.getAssetDetails(gold).issueHeight() + 1);
    put("update", UpdateAssetInfoTransaction.builder(gold, "Silver", "coins")
        .getSignedWith(owner));
    // The distribution at a height is known when there is a block above it.
    int height = node.getHeight();
    above(height);
    tell("asset ids", List.of(gold, nft));
    call("getAssetDetails", () -> node.getAssetDetails(gold));
    call("getAssetsDetails", () -> node.getAssetsDetails(List.of(gold, nft)));
    call("getAssetBalance", () -> node.getAssetBalance(address, gold));
    call("getAssetsBalance", () -> node.getAssetsBalance(address));
    call("getNft", () -> node.getNft(address));
    call("nft page", "getNft", () -> node.getNft(address, 1));
    call("nft page after", "getNft", () -> node.getNft(address, 9, nft));
    call("getAssetDistribution", () -> node.getAssetDistribution(gold, height));
    call("distribution page", "getAssetDistribution",
        () -> node.getAssetDistribution(gold, height, 1));
    call("distribution page after", "getAssetDistribution",
        () -> node.getAssetDistribution(gold, height, 9,
            node.getAssetDistribution(gold, height, 1).lastItem()));
    return gold;
  }

  private void leasesAndNames() throws Exception {
    put("alias", CreateAliasTransaction.builder("wavesj-user").getSignedWith(owner));
    call("getAliasesByAddress", () -> node.getAliasesByAddress(of(owner)));
    call("getAddressByAlias", () -> node.getAddressByAlias(Alias.as("wavesj-user")));
    LeaseTransaction lent =
        put("lease", LeaseTransaction.builder(of(friend), 1_000).getSignedWith(owner));
    call("getActiveLeases", () -> node.getActiveLeases(of(owner)));
    put("cancel lease", LeaseCancelTransaction.builder(lent.id()).getSignedWith(owner));
  }

  private void scripts() throws Exception {
    call("compileScript", () -> node.compileScript(DAPP));
    put("set script", SetScriptTransaction.builder(node.compileScript(DAPP).script())
        .fee(COIN / 100).getSignedWith(dapp));
    AssetId smart = put("issue of a smart asset", IssueTransaction.builder("Smart", 10, 0)
        .script(node.compileScript(ASSET).script()).getSignedWith(owner)).assetId();
    put("set asset script", SetAssetScriptTransaction
        .builder(smart, node.compileScript(ASSET).script()).getSignedWith(owner));
    call("getScriptInfo", () -> node.getScriptInfo(of(dapp)));
    call("getScriptMeta", () -> node.getScriptMeta(of(dapp)));
    InvokeScriptTransaction invocation = InvokeScriptTransaction
        .builder(of(dapp), Function.as("keep", IntegerArg.as(21))).payments(Amount.of(1))
        .getSignedWith(owner);
    call("validateTransaction", () -> node.validateTransaction(invocation));
    call("calculateTransactionFee", () -> {
      Amount fee = node.calculateTransactionFee(invocation);
      return List.of(fee.value(), fee.assetId().isWaves());
    });
    put("invoke", invocation);
    Id id = invocation.id();
    call("getStateChanges", () -> node.getStateChanges(id));
    call("getStateChangesByAddress", () -> node.getStateChangesByAddress(of(dapp), 1));
    call("getTransactionStatus", () -> node.getTransactionStatus(id));
    call("getTransactionsStatus", () -> node.getTransactionsStatus(id, id));
    call("getTransactionInfo", () -> node.getTransactionInfo(id).height());
    call("getTransactionsByAddress", () -> ids(node.getTransactionsByAddress(of(dapp), 1)));
    call("transactions after", "getTransactionsByAddress",
        () -> ids(node.getTransactionsByAddress(of(dapp), 1, id)));
    call("getUtxSize", node::getUtxSize);
    call("getUnconfirmedTransactions", node::getUnconfirmedTransactions);
    call("getUnconfirmedTransaction", () -> node.getUnconfirmedTransaction(id));
  }

  private static List<String> ids(List<com.wavesplatform.wavesj.TransactionInfo> found) {
    List<String> names = new ArrayList<>();
    for (com.wavesplatform.wavesj.TransactionInfo each : found) {
      names.add(each.tx().id().toString());
    }
    return names;
  }

  private void exchange(AssetId gold) throws Exception {
    Amount amount = Amount.of(10, gold);
    Amount price = Amount.of(COIN);
    Order buy = Order.buy(amount, price, owner.publicKey()).getSignedWith(friend);
    Order sell = Order.sell(amount, price, owner.publicKey()).getSignedWith(owner);
    put("exchange", ExchangeTransaction.builder(buy, sell, 10, COIN, 300_000, 300_000)
        .getSignedWith(owner));
  }

  private void blocks() throws Exception {
    // On some chains there is soon another last block.
    Block last = node.getLastBlock();
    int height = last.height();
    above(height);
    call("getHeight", () -> node.getHeight() - height > 0);
    call("getLastBlock", () -> node.getLastBlock().height() - height > 0);
    call("getBlock", () -> node.getBlock(height));
    call("block by id", "getBlock", () -> node.getBlock(node.getBlock(height).id()));
    call("getBlocks", () -> node.getBlocks(height - 1, height).size());
    call("getGenesisBlock", () -> node.getGenesisBlock().height());
    call("getBlocksGeneratedBy",
        () -> node.getBlocksGeneratedBy(last.generator(), height, height).size());
    call("getLastBlockHeaders", () -> node.getLastBlockHeaders().height() - height > 0);
    call("getBlockHeaders", () -> node.getBlockHeaders(height));
    call("headers by id", "getBlockHeaders",
        () -> node.getBlockHeaders(node.getBlock(height).id()));
    call("getBlocksHeaders", () -> node.getBlocksHeaders(height - 1, height).size());
    call("getBlockHeight", () -> node.getBlockHeight(node.getBlock(height).id()) - height);
    call("getBlocksDelay", () -> node.getBlocksDelay(node.getBlock(height).id(), 1) > 0);
    call("getBlockchainRewards", () -> node.getBlockchainRewards().height() - height > 0);
    call("rewards at", "getBlockchainRewards", () -> node.getBlockchainRewards(height));
  }

  private void refusals() throws Exception {
    PrivateKey poor = PrivateKey.fromSeed("nobody has this seed");
    call("refused", "broadcast", () -> node
        .broadcast(TransferTransaction.builder(of(friend), Amount.of(COIN)).getSignedWith(poor)));
    call("no transaction", "getTransactionInfo",
        () -> node.getTransactionInfo(Id.as(new byte[32])));
    call("no block", "getBlock", () -> node.getBlock(1_000_000));
    call("no alias", "getAddressByAlias", () -> node.getAddressByAlias(Alias.as("nobody")));
  }
}
