import java.io.IOException;

import org.apache.hadoop.hbase.thrift2.ThriftServer;

/** A Thrift gateway that ends with the process that started it, however that one ends: its standard input is closed then. */
public final class HbaseGateway {
    private HbaseGateway() {
    }

    /** Arguments: those of HBase's own Thrift server. */
    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(HbaseGateway::endWithParent, "parent");
        thread.setDaemon(true);
        thread.start();
        ThriftServer.main(arguments);
    }

    private static void endWithParent() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is ever sent.
            }
        } catch (IOException gone) {
            // As when it is closed.
        }
        Runtime.getRuntime().halt(0);
    }
}
