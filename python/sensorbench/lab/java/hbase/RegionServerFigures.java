import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.MetricsRegionServerWrapper;
import org.apache.hadoop.metrics2.AbstractMetric;
import org.apache.hadoop.metrics2.MetricsRecord;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.impl.MetricsCollectorImpl;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the figures of a region server to whoever connects: lines of a name and a number, then the end. What the server tells its
 * master is up to three seconds old, and counts fall there when regions move.
 */
final class RegionServerFigures implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(RegionServerFigures.class);
    /** What names of sizes of tables begin with. */
    static final String TABLE = "table ";

    /** What only the server's metrics have, and how it is told. */
    private static final Map<String, String> OF_METRICS = Map.of(
            "FlushTime_num_ops", "flushes",
            "CompactionTime_num_ops", "compactions",
            "compactedInputBytes", "compacted_bytes_in",
            "compactedOutputBytes", "compacted_bytes_out");

    private final ServerSocket door;
    private final HRegionServer server;

    private RegionServerFigures(ServerSocket door, HRegionServer server) {
        this.door = door;
        this.server = server;
    }

    /** Answers at one address and port, on a thread of its own, as long as the server runs. */
    static void listen(InetSocketAddress address, HRegionServer server) throws IOException {
        ServerSocket door = new ServerSocket();
        door.bind(address);
        Thread thread = new Thread(new RegionServerFigures(door, server), "figures");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        while (true) {
            try (Socket caller = door.accept();
                    PrintStream out = new PrintStream(caller.getOutputStream(), false, StandardCharsets.UTF_8)) {
                told().forEach((name, number) -> out.print(name + "\t" + number + "\n"));
            } catch (IOException gone) {
                // The caller went: the next one is answered.
            } catch (RuntimeException failed) {
                LOG.warn("figures could not be told", failed);
            }
        }
    }

    private Map<String, Long> told() {
        Map<String, Long> told = new TreeMap<>();
        if (!server.isOnline()) {
            return told;
        }
        long[] rows = RegionRequests.counts();
        told.put("read_requests", rows[0]);
        told.put("write_requests", rows[1]);
        addOfServer(server.getMetrics().getRegionServerWrapper(), told);
        addOfRegions(told);
        addOfMetrics((MetricsSource) server.getMetrics().getMetricsSource(), told);
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            told.merge("garbage_collection_ms", collector.getCollectionTime(), Long::sum);
        }
        return told;
    }

    /** Asked of their source, because as MBeans they are ten seconds old, and gone for a while when a region opens. */
    private static void addOfMetrics(MetricsSource source, Map<String, Long> told) {
        MetricsCollectorImpl collected = new MetricsCollectorImpl();
        source.getMetrics(collected, true);
        for (MetricsRecord record : collected.getRecords()) {
            for (AbstractMetric metric : record.metrics()) {
                if (OF_METRICS.containsKey(metric.name())) {
                    told.put(OF_METRICS.get(metric.name()), metric.value().longValue());
                }
            }
        }
    }

    private static void addOfServer(MetricsRegionServerWrapper metrics, Map<String, Long> told) {
        told.put("regions", metrics.getNumOnlineRegions());
        told.put("total_requests", metrics.getTotalRequestCount());
        told.put("get_calls", metrics.getRpcGetRequestsCount());
        told.put("scan_calls", metrics.getRpcScanRequestsCount());
        told.put("multi_calls", metrics.getRpcMultiRequestsCount());
        told.put("mutate_calls", metrics.getRpcMutateRequestsCount());
        told.put("block_cache_hits", metrics.getBlockCacheHitCount());
        told.put("block_cache_misses", metrics.getBlockCacheMissCount());
        told.put("block_cache_bytes", metrics.getBlockCacheSize());
        told.put("pending_flushes", (long) metrics.getFlushQueueSize());
        told.put("pending_compactions", (long) metrics.getCompactionQueueSize());
    }

    private static void addOfRegions(Map<String, Long> told) {
        for (String name : new String[] {"memstore_heap_bytes", "memstore_off_heap_bytes", "store_files", "store_file_bytes"}) {
            told.put(name, 0L);
        }
        List<HRegion> open = RegionRequests.open();
        told.put("table_regions", (long) open.size());
        for (HRegion region : open) {
            told.merge("memstore_heap_bytes", region.getMemStoreHeapSize(), Long::sum);
            told.merge("memstore_off_heap_bytes", region.getMemStoreOffHeapSize(), Long::sum);
            for (HStore store : region.getStores()) {
                told.merge("store_files", (long) store.getStorefilesCount(), Long::sum);
                told.merge("store_file_bytes", store.getStorefilesSize(), Long::sum);
                told.merge(TABLE + region.getTableDescriptor().getTableName().getNameWithNamespaceInclAsString(),
                        store.getStorefilesSize(), Long::sum);
            }
        }
    }
}
