// Every call of a node's gRPC services, by grpc-java with the stubs and messages that the ecosystem's
// package com.wavesplatform:protobuf-schemas carries: java Calls NODE_PORT UPDATES_PORT TRANSACTION (base64)

import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import com.google.protobuf.Empty;
import com.google.protobuf.StringValue;
import com.wavesplatform.api.grpc.AccountsApiGrpc;
import com.wavesplatform.api.grpc.AccountsApiOuterClass.AccountRequest;
import com.wavesplatform.api.grpc.AccountsApiOuterClass.BalancesRequest;
import com.wavesplatform.api.grpc.AccountsApiOuterClass.DataRequest;
import com.wavesplatform.api.grpc.AssetsApiGrpc;
import com.wavesplatform.api.grpc.AssetsApiOuterClass.AssetRequest;
import com.wavesplatform.api.grpc.AssetsApiOuterClass.NFTRequest;
import com.wavesplatform.api.grpc.BlockchainApiGrpc;
import com.wavesplatform.api.grpc.BlockchainApiOuterClass.ActivationStatusRequest;
import com.wavesplatform.api.grpc.BlocksApiGrpc;
import com.wavesplatform.api.grpc.BlocksApiOuterClass.BlockRangeRequest;
import com.wavesplatform.api.grpc.BlocksApiOuterClass.BlockRequest;
import com.wavesplatform.api.grpc.BlocksApiOuterClass.BlockWithHeight;
import com.wavesplatform.api.grpc.TransactionsApiGrpc;
import com.wavesplatform.api.grpc.TransactionsApiOuterClass.SignRequest;
import com.wavesplatform.api.grpc.TransactionsApiOuterClass.TransactionResponse;
import com.wavesplatform.api.grpc.TransactionsApiOuterClass.TransactionSnapshotsRequest;
import com.wavesplatform.api.grpc.TransactionsApiOuterClass.TransactionsByIdRequest;
import com.wavesplatform.api.grpc.TransactionsApiOuterClass.TransactionsRequest;
import com.wavesplatform.events.api.grpc.protobuf.BlockchainUpdates.GetBlockUpdateRequest;
import com.wavesplatform.events.api.grpc.protobuf.BlockchainUpdates.GetBlockUpdatesRangeRequest;
import com.wavesplatform.events.api.grpc.protobuf.BlockchainUpdates.SubscribeEvent;
import com.wavesplatform.events.api.grpc.protobuf.BlockchainUpdates.SubscribeRequest;
import com.wavesplatform.events.api.grpc.protobuf.BlockchainUpdatesApiGrpc;
import com.wavesplatform.protobuf.transaction.TransactionOuterClass.SignedTransaction;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

public final class Calls {
  private static final Gson JSON = new Gson();
  private static final TreeSet<String> CALLED = new TreeSet<>();

  private static void tell(String name, Object value) {
    System.out.println(JSON.toJson(new Told(name, value)));
  }

  private record Told(String name, Object value) {}

  private static ManagedChannel open(String port) {
    return ManagedChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(port)).usePlaintext()
        .intercept(new io.grpc.ClientInterceptor() {
          @Override
          public <A, B> io.grpc.ClientCall<A, B> interceptCall(
              MethodDescriptor<A, B> method, io.grpc.CallOptions options, io.grpc.Channel next) {
            CALLED.add(method.getFullMethodName());
            return next.newCall(method, options);
          }
        }).build();
  }

  private static <T> List<T> all(Iterator<T> found) {
    List<T> list = new ArrayList<>();
    found.forEachRemaining(list::add);
    return list;
  }

  private static Object refusal(Callable<?> call) throws Exception {
    try {
      call.call();
      return null;
    } catch (StatusRuntimeException error) {
      Metadata.Key<String> key = Metadata.Key.of("error-code", Metadata.ASCII_STRING_MARSHALLER);
      Metadata trailers = error.getTrailers();
      String number = trailers == null ? null : trailers.get(key);
      return Map.of("status", error.getStatus().getCode().name(), "number", number == null ? "" : number);
    }
  }

  public static void main(String[] args) throws Exception {
    ManagedChannel node = open(args[0]);
    ManagedChannel updatesChannel = open(args[1]);
    SignedTransaction signed = SignedTransaction.parseFrom(Base64.getDecoder().decode(args[2]));
    BlocksApiGrpc.BlocksApiBlockingStub blocks = BlocksApiGrpc.newBlockingStub(node);
    AccountsApiGrpc.AccountsApiBlockingStub accounts = AccountsApiGrpc.newBlockingStub(node);
    AssetsApiGrpc.AssetsApiBlockingStub assets = AssetsApiGrpc.newBlockingStub(node);
    BlockchainApiGrpc.BlockchainApiBlockingStub chain = BlockchainApiGrpc.newBlockingStub(node);
    TransactionsApiGrpc.TransactionsApiBlockingStub transactions = TransactionsApiGrpc.newBlockingStub(node);
    BlockchainUpdatesApiGrpc.BlockchainUpdatesApiBlockingStub updates =
        BlockchainUpdatesApiGrpc.newBlockingStub(updatesChannel);
    ByteString nothing = ByteString.copyFrom(new byte[32]);

    tell("height", blocks.getCurrentHeight(Empty.getDefaultInstance()).getValue());
    BlockWithHeight block =
        blocks.getBlock(BlockRequest.newBuilder().setHeight(2).setIncludeTransactions(true).build());
    tell("block", List.of(block.getHeight(), block.getBlock().getTransactionsCount()));
    ByteString sender = block.getBlock().getTransactions(0).getWavesTransaction().getSenderPublicKey();
    tell("range", all(blocks.getBlockRange(BlockRangeRequest.newBuilder().setFromHeight(1).setToHeight(2).build()))
        .stream().map(BlockWithHeight::getHeight).toList());
    AccountRequest account = AccountRequest.newBuilder().setAddress(sender).build();
    tell("balances", all(accounts.getBalances(BalancesRequest.newBuilder().setAddress(sender).build()))
        .stream().map(each -> each.getBalanceCase().name()).toList());
    tell("script", accounts.getScript(account).getScriptBytes().size());
    tell("leases", all(accounts.getActiveLeases(account)).size());
    tell("data", all(accounts.getDataEntries(DataRequest.newBuilder().setAddress(sender).build())).stream()
        .map(each -> List.of(each.getEntry().getKey(), each.getEntry().getIntValue())).toList());
    tell("alias", refusal(() -> accounts.resolveAlias(StringValue.of("nobody-at-all"))));
    tell("asset", refusal(() -> assets.getInfo(AssetRequest.newBuilder().setAssetId(nothing).build())));
    tell("nfts", all(assets.getNFTList(NFTRequest.newBuilder().setAddress(sender).setLimit(10).build())).size());
    tell("activation", chain.getActivationStatus(ActivationStatusRequest.newBuilder().setHeight(2).build())
        .getFeaturesCount());
    tell("target", chain.getBaseTarget(Empty.getDefaultInstance()).getBaseTarget() > 0);
    tell("score", !chain.getCumulativeScore(Empty.getDefaultInstance()).getScore().isEmpty());
    TransactionsRequest bySender = TransactionsRequest.newBuilder().setSender(sender).build();
    List<TransactionResponse> listed = all(transactions.getTransactions(bySender));
    tell("transactions", listed.stream()
        .map(each -> List.of(each.getHeight(), each.getApplicationStatus().name())).toList());
    List<ByteString> ids = listed.stream().map(TransactionResponse::getId).collect(Collectors.toList());
    tell("snapshots", all(transactions.getTransactionSnapshots(
        TransactionSnapshotsRequest.newBuilder().addAllTransactionIds(ids).build())).size());
    tell("changes", all(transactions.getStateChanges(
        TransactionsRequest.newBuilder().addAllTransactionIds(ids).build())).size());
    tell("statuses", all(transactions.getStatuses(TransactionsByIdRequest.newBuilder().addAllTransactionIds(ids)
        .addTransactionIds(nothing).build())).stream().map(each -> each.getStatus().name()).toList());
    tell("sign", refusal(() -> transactions.sign(SignRequest.getDefaultInstance())));
    tell("sent", transactions.broadcast(signed).equals(signed));
    tell("unconfirmed", all(transactions.getUnconfirmed(bySender)).size());
    tell("update", updates.getBlockUpdate(GetBlockUpdateRequest.newBuilder().setHeight(2).build())
        .getUpdate().getAppend().getTransactionIdsCount());
    tell("updates", updates.getBlockUpdatesRange(
        GetBlockUpdatesRangeRequest.newBuilder().setFromHeight(1).setToHeight(2).build())
        .getUpdatesList().stream().map(each -> each.getHeight()).toList());
    Iterator<SubscribeEvent> events = updates.subscribe(SubscribeRequest.newBuilder().setFromHeight(1).build());
    List<Integer> heights = new ArrayList<>();
    while (heights.size() < 3) {
      heights.add(events.next().getUpdate().getHeight());
    }
    tell("events", heights);

    TreeSet<String> there = new TreeSet<>();
    for (io.grpc.ServiceDescriptor service : List.of(BlocksApiGrpc.getServiceDescriptor(),
        AccountsApiGrpc.getServiceDescriptor(), AssetsApiGrpc.getServiceDescriptor(),
        BlockchainApiGrpc.getServiceDescriptor(), TransactionsApiGrpc.getServiceDescriptor(),
        BlockchainUpdatesApiGrpc.getServiceDescriptor())) {
      service.getMethods().forEach(each -> there.add(each.getFullMethodName()));
    }
    tell("methods", there);
    tell("called", CALLED);
    node.shutdownNow();
    updatesChannel.shutdownNow();
  }
}
