import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegion;

/**
 * Keeps count of the rows that were read and written in all regions of users' tables that this server has had. The server itself adds
 * up those that it has now, so that its sums fall when a region moves away. Only told when regions open and close, it costs
 * requests nothing.
 */
public final class RegionRequests implements RegionCoprocessor {
    private static final Set<HRegion> OPEN = new HashSet<>();
    private static long readsInClosed;
    private static long writesInClosed;

    @Override
    public void start(CoprocessorEnvironment environment) {
        synchronized (OPEN) {
            OPEN.add(region(environment));
        }
    }

    @Override
    public void stop(CoprocessorEnvironment environment) {
        HRegion region = region(environment);
        synchronized (OPEN) {
            if (OPEN.remove(region)) {
                readsInClosed += region.getReadRequestsCount();
                writesInClosed += region.getWriteRequestsCount();
            }
        }
    }

    /** Rows read, rows written. */
    static long[] counts() {
        synchronized (OPEN) {
            long reads = readsInClosed;
            long writes = writesInClosed;
            for (HRegion region : OPEN) {
                reads += region.getReadRequestsCount();
                writes += region.getWriteRequestsCount();
            }
            return new long[] {reads, writes};
        }
    }

    /** The regions of users' tables that are open now. */
    static List<HRegion> open() {
        synchronized (OPEN) {
            return new ArrayList<>(OPEN);
        }
    }

    private static HRegion region(CoprocessorEnvironment environment) {
        return (HRegion) ((RegionCoprocessorEnvironment) environment).getRegion();
    }
}
