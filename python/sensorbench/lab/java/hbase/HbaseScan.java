import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Scans by HBase's own client, with no gateway between: what a gateway costs is told by the same scans through it. Each line of input,
 * `START STOP REPEATS` (keys as hexadecimal digits, `-` for none), is answered with `ROWS NANOSECONDS` of all repeats.
 */
public final class HbaseScan {
    private HbaseScan() {
    }

    /** Arguments: the addresses of ZooKeeper and its port, the table, and how many rows are fetched at a time. */
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = HBaseConfiguration.create();
        configuration.set("hbase.zookeeper.quorum", arguments[0]);
        configuration.set("hbase.zookeeper.property.clientPort", arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Table table = connection.getTable(TableName.valueOf(arguments[2]))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                long rows = 0;
                long startNs = System.nanoTime();
                for (int repeat = 0; repeat < Integer.parseInt(words[2]); repeat++) {
                    rows += rows(table, words[0], words[1], Integer.parseInt(arguments[3]));
                }
                System.out.println(rows + " " + (System.nanoTime() - startNs));
            }
        }
    }

    private static long rows(Table table, String start, String stop, int caching) throws Exception {
        Scan scan = new Scan().withStartRow(key(start)).withStopRow(key(stop)).setCaching(caching);
        long rows = 0;
        try (ResultScanner results = table.getScanner(scan)) {
            for (Result result : results) {
                for (Cell cell : result.rawCells()) {
                    // As the driver does, each value is read.
                    rows += Bytes.toLong(cell.getValueArray(), cell.getValueOffset(), cell.getValueLength()) == 0 ? 0 : 1;
                }
            }
        }
        return rows;
    }

    private static byte[] key(String digits) {
        return digits.equals("-") ? new byte[0] : Bytes.fromHex(digits);
    }
}
