import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.regionserver.HRegionServer;

/** A region server, the Thrift gateway that belongs to it (a process of its own), and the door at which its figures are asked. */
public final class HbaseNode {
    private HbaseNode() {
    }

    /** Arguments: the address, the port for figures, then the command that starts the gateway. */
    public static void main(String[] arguments) throws Exception {
        startGateway(Arrays.asList(arguments).subList(2, arguments.length));
        Configuration configuration = HBaseConfiguration.create();
        HRegionServer server = new HRegionServer(configuration);
        RegionServerFigures.listen(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])), server);
        server.start();
        server.join();
        System.exit(server.isAborted() ? 1 : 0);
    }

    /** A node is of no use to clients without its gateway, so it ends with it. */
    private static void startGateway(List<String> command) throws IOException {
        new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start()
                .onExit()
                .thenRun(() -> System.exit(1));
    }
}
