import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BalanceRequest;
import org.apache.hadoop.hbase.client.BalanceResponse;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.thrift2.generated.TGet;
import org.apache.hadoop.hbase.thrift2.generated.THBaseService;
import org.apache.hadoop.hbase.util.VersionInfo;
import org.apache.hbase.thirdparty.com.google.gson.Gson;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Carries out orders that the gateways have no word for: a line is an order (words with one space between them), and is answered by
 * a line, an object in JSON. {"error": "…"} says why an order was not carried out. What the orders are, says {@link #answer}.
 */
final class HbaseAdmin implements Runnable {
    private static final long LOOK_EVERY_MS = 50;
    private static final int ANSWERS_WITHIN_MS = 2000;
    private static final long MOVED_WITHIN_S = 540;
    private static final Gson JSON = new Gson();
    /** What is told of the cluster's configuration. */
    private static final String[] SETTINGS = {
        "hbase.balancer.period",
        "hbase.client.operation.timeout",
        "hbase.client.pause",
        "hbase.client.retries.number",
        "hbase.client.scanner.caching",
        "hbase.hregion.majorcompaction",
        "hbase.hregion.max.filesize",
        "hbase.hregion.memstore.block.multiplier",
        "hbase.hregion.memstore.flush.size",
        "hbase.hstore.blockingStoreFiles",
        "hbase.hstore.compactionThreshold",
        "hbase.master.loadbalancer.class",
        "hbase.regionserver.global.memstore.size",
        "hbase.regionserver.handler.count",
        "hbase.regionserver.thrift.framed",
        "hbase.rootdir",
        "hbase.rpc.timeout",
        "hbase.thrift.minWorkerThreads",
        "hbase.wal.hsync",
        "hbase.wal.provider",
        "hfile.block.cache.size",
        "sensorbench.figures.port",
        "sensorbench.region_server.heap",
        "zookeeper.session.timeout",
    };

    private final Socket caller;
    private final Configuration configuration;
    private final Cluster cluster;

    /** The one connection, made when it is first needed, because the master starts after the door is open. */
    private static final class Cluster {
        private final Configuration configuration;
        private final HMaster master;
        private Connection connection;

        Cluster(Configuration configuration, HMaster master) {
            this.configuration = configuration;
            this.master = master;
        }

        synchronized Admin admin() throws IOException {
            if (!master.isInitialized()) {
                throw new IllegalStateException("the master is not ready yet");
            }
            if (connection == null) {
                connection = ConnectionFactory.createConnection(configuration);
            }
            return connection.getAdmin();
        }
    }

    private HbaseAdmin(Socket caller, Cluster cluster) {
        this.caller = caller;
        this.configuration = cluster.configuration;
        this.cluster = cluster;
    }

    /** Answers at one address, on threads of its own. */
    static void listen(InetSocketAddress address, Configuration configuration, HMaster master) throws IOException {
        ServerSocket door = new ServerSocket();
        door.bind(address);
        Cluster cluster = new Cluster(configuration, master);
        start("orders", () -> {
            while (true) {
                try {
                    start("order", new HbaseAdmin(door.accept(), cluster));
                } catch (IOException gone) {
                    // The caller went.
                }
            }
        });
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        try (Socket open = caller;
                BufferedReader in = new BufferedReader(new InputStreamReader(open.getInputStream(), StandardCharsets.UTF_8));
                PrintStream out = new PrintStream(open.getOutputStream(), true, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.print(JSON.toJson(carriedOut(line.split(" "))) + "\n");
                out.flush();
            }
        } catch (IOException gone) {
            // The caller went.
        }
    }

    private Map<String, ?> carriedOut(String[] words) {
        List<String> others = Arrays.asList(words).subList(1, words.length);
        try (Admin admin = cluster.admin()) {
            return answer(words[0], others, admin);
        } catch (IOException | TException | InterruptedException | RuntimeException failed) {
            String why = failed.getMessage() == null ? "" : failed.getMessage().split("\n")[0];
            return Map.of("error", String.format("%s: %s: %s", words[0], failed.getClass().getSimpleName(), why));
        }
    }

    private Map<String, ?> answer(String order, List<String> words, Admin admin)
            throws IOException, TException, InterruptedException {
        switch (order) {
            case "flush":
                for (String table : words) {
                    admin.flush(TableName.valueOf(table));
                }
                return Map.of();
            case "compact":
                return compact(words, admin);
            case "balance":
                return balance(admin);
            case "empty-caches":
                for (TableName table : admin.listTableNames()) {
                    admin.clearBlockCache(table);
                }
                return Map.of();
            case "size":
                return size(one(words), admin);
            case "status":
                return status(admin);
            case "describe":
                return describe(admin);
            case "ready":
                return ready(one(words), admin);
            case "remove":
                return remove(one(words), admin);
            default:
                throw new IllegalArgumentException(
                        "expected flush, compact, balance, empty-caches, size, status, describe, ready or remove");
        }
    }

    private static String one(List<String> words) {
        if (words.size() != 1) {
            throw new IllegalArgumentException("expected one word after it");
        }
        return words.get(0);
    }

    /** Makes one file of each store, and waits until that is over. */
    private static Map<String, ?> compact(List<String> tables, Admin admin) throws IOException, InterruptedException {
        for (String table : tables) {
            admin.majorCompact(TableName.valueOf(table));
        }
        for (String table : tables) {
            while (admin.getCompactionState(TableName.valueOf(table)) != CompactionState.NONE) {
                Thread.sleep(LOOK_EVERY_MS);
            }
        }
        return Map.of();
    }

    /**
     * Lets the balancer choose once, waits until its moves are over, and then sees to it that all servers have equally many regions.
     * The balancer refuses to choose while regions move, or a dead server's are recovered. It is called within the master, because it moves
     * one region after the other until it answers, which takes longer than calls to the master may.
     */
    private Map<String, ?> balance(Admin admin) throws IOException, InterruptedException {
        int[] moves = {0};
        waitUntil(() -> {
            BalanceResponse told = cluster.master.balance(BalanceRequest.defaultInstance());
            moves[0] += told.getMovesExecuted();
            return told.isBalancerRan() && told.getMovesExecuted() == told.getMovesCalculated();
        });
        waitUntil(() -> inTransition(admin) == 0);
        // A move that was carried out may have left the region where it was: only a look at the servers tells.
        waitUntil(() -> {
            int shared = evenOut(admin);
            moves[0] += shared;
            return shared == 0 && inTransition(admin) == 0;
        });
        return Map.of("moves", moves[0]);
    }

    /**
     * Moves regions of tables that are not HBase's own until no server has two more than another, first of those with data, then of the
     * others; says how many. The balancer alone does not do that: it counts all regions alike, may choose only regions of HBase's own
     * tables, and HBase 2.6.4 may open the first region that it moves to a new server on the old one again, yet count the move as
     * executed.
     */
    private static int evenOut(Admin admin) throws IOException {
        List<ServerName> servers = living(admin);
        Set<String> withData = new HashSet<>();
        for (ServerName server : servers) {
            for (RegionMetrics told : admin.getRegionMetrics(server)) {
                if (told.getStoreFileCount() > 0) {
                    withData.add(RegionInfo.encodeRegionName(told.getRegionName()));
                }
            }
        }
        return evenOut(admin, servers, region -> withData.contains(region.getEncodedName()))
                + evenOut(admin, servers, region -> !withData.contains(region.getEncodedName()));
    }

    private static int evenOut(Admin admin, List<ServerName> servers, Predicate<RegionInfo> counts) throws IOException {
        Map<ServerName, List<RegionInfo>> held = new TreeMap<>();
        for (ServerName server : servers) {
            held.put(server, admin.getRegions(server).stream()
                    .filter(region -> !region.getTable().isSystemTable() && counts.test(region))
                    .collect(Collectors.toCollection(ArrayList::new)));
        }
        Comparator<Map.Entry<ServerName, List<RegionInfo>>> bySize = Comparator.comparingInt(of -> of.getValue().size());
        for (int moves = 0; true; moves++) {
            List<RegionInfo> most = Collections.max(held.entrySet(), bySize).getValue();
            Map.Entry<ServerName, List<RegionInfo>> fewest = Collections.min(held.entrySet(), bySize);
            if (most.size() - fewest.getValue().size() < 2) {
                return moves;
            }
            RegionInfo region = most.remove(most.size() - 1);
            admin.move(region.getEncodedNameAsBytes(), fewest.getKey());
            fewest.getValue().add(region);
        }
    }

    /** A question to the cluster. */
    private interface Condition {
        boolean holds() throws IOException;
    }

    private static void waitUntil(Condition condition) throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(MOVED_WITHIN_S);
        while (!condition.holds()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("regions still move after " + MOVED_WITHIN_S + " s");
            }
            Thread.sleep(LOOK_EVERY_MS);
        }
    }

    private static int inTransition(Admin admin) throws IOException {
        return admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.REGIONS_IN_TRANSITION)).getRegionStatesInTransition().size();
    }

    private Map<String, ?> size(String namespace, Admin admin) throws IOException {
        Map<String, Long> sizes = new TreeMap<>();
        for (TableName table : admin.listTableNamesByNamespace(namespace)) {
            sizes.put(table.getNameWithNamespaceInclAsString(), 0L);
        }
        for (ServerName server : living(admin)) {
            figures(server).forEach((name, number) -> {
                if (name.startsWith(RegionServerFigures.TABLE)) {
                    sizes.computeIfPresent(name.substring(RegionServerFigures.TABLE.length()), (table, sum) -> sum + number);
                }
            });
        }
        return sizes;
    }

    /** Of each region server, by its address; one that does not answer is left out. */
    private Map<String, ?> status(Admin admin) throws IOException {
        Map<String, Map<String, Long>> status = new TreeMap<>();
        for (ServerName server : living(admin)) {
            try {
                Map<String, Long> told = figures(server);
                told.keySet().removeIf(name -> name.startsWith(RegionServerFigures.TABLE));
                if (!told.isEmpty()) {
                    status.put(server.getHostname(), told);
                }
            } catch (IOException gone) {
                // It was killed, and the master does not know it yet.
            }
        }
        return status;
    }

    /** The cluster's settings, and how durable tables of no namespace are, which are made by others that lie over it. */
    private Map<String, ?> describe(Admin admin) throws IOException {
        Map<String, String> settings = new TreeMap<>();
        for (TableDescriptor table : admin.listTableDescriptorsByNamespace("default".getBytes(StandardCharsets.UTF_8))) {
            settings.put("durability of " + table.getTableName().getNameAsString(), table.getDurability().name());
        }
        for (String name : SETTINGS) {
            String value = configuration.get(name);
            if (value != null) {
                settings.put(name, value);
            }
        }
        return Map.of("version", VersionInfo.getVersion(), "settings", settings);
    }

    /** Whether the cluster takes orders, and the gateway at HOST:PORT answers a question that a region server must answer. */
    private Map<String, ?> ready(String gateway, Admin admin) throws IOException, TException {
        String host = gateway.substring(0, gateway.indexOf(':'));
        admin.listNamespaces();
        if (living(admin).stream().noneMatch(server -> server.getHostname().equals(host))) {
            throw new IllegalStateException("the region server has not joined yet");
        }
        int port = Integer.parseInt(gateway.substring(host.length() + 1));
        try (TSocket socket = new TSocket(TConfiguration.DEFAULT, host, port, ANSWERS_WITHIN_MS)) {
            socket.open();
            boolean isFramed = configuration.getBoolean("hbase.regionserver.thrift.framed", false);
            TTransport transport = isFramed ? new TFramedTransport(socket) : socket;
            THBaseService.Client client = new THBaseService.Client(new TBinaryProtocol(transport));
            client.exists(ByteBuffer.wrap(TableName.META_TABLE_NAME.getName()), new TGet(ByteBuffer.wrap(new byte[] {'-'})));
        }
        return Map.of();
    }

    /** Moves all regions of a server to others, then stops it. One that is dead is waited for until others have its regions. */
    private static Map<String, ?> remove(String host, Admin admin) throws IOException, InterruptedException {
        List<ServerName> servers = living(admin).stream()
                .filter(server -> server.getHostname().equals(host))
                .collect(Collectors.toList());
        admin.decommissionRegionServers(servers, true);
        for (ServerName server : servers) {
            waitUntil(() -> admin.getRegions(server).isEmpty());
            admin.stopRegionServer(server.getHostname() + ":" + server.getPort());
            waitUntil(() -> !living(admin).contains(server));
        }
        waitUntil(() -> inTransition(admin) == 0);
        return Map.of();
    }

    private static List<ServerName> living(Admin admin) throws IOException {
        return List.copyOf(admin.getRegionServers());
    }

    private Map<String, Long> figures(ServerName server) throws IOException {
        Map<String, Long> told = new TreeMap<>();
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(server.getHostname(), configuration.getInt("sensorbench.figures.port", 0)), ANSWERS_WITHIN_MS);
            socket.setSoTimeout(ANSWERS_WITHIN_MS);
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                int tab = line.indexOf('\t');
                told.put(line.substring(0, tab), Long.parseLong(line.substring(tab + 1)));
            }
        }
        return told;
    }
}
