import java.io.File;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;

import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** What the nodes of a cluster need beside them, in one process: ZooKeeper, the master, and the door for orders ({@link HbaseAdmin}). */
public final class HbaseCoordinator {
    private static final int TICK_MS = 500;
    /** No limit of connections: all come from this machine. */
    private static final int CONNECTIONS = 0;

    private HbaseCoordinator() {
    }

    /** Arguments: the address, the ports of ZooKeeper and for orders, and ZooKeeper's folder. */
    public static void main(String[] arguments) throws Exception {
        String host = arguments[0];
        startZooKeeper(new InetSocketAddress(host, Integer.parseInt(arguments[1])), new File(arguments[3]));
        HMaster master = new HMaster(HBaseConfiguration.create());
        // The master has changed its configuration, so that clients need one of their own.
        HbaseAdmin.listen(new InetSocketAddress(host, Integer.parseInt(arguments[2])), HBaseConfiguration.create(), master);
        master.start();
        master.join();
        System.exit(1);
    }

    private static void startZooKeeper(InetSocketAddress address, File folder) throws Exception {
        ZooKeeperServer server = new ZooKeeperServer(folder, folder, TICK_MS);
        // Servers may ask for any time until they are taken for dead.
        server.setMaxSessionTimeout((int) TimeUnit.HOURS.toMillis(1));
        ServerCnxnFactory.createFactory(address, CONNECTIONS).startup(server);
    }
}
