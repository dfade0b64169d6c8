import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.rmi.registry.LocateRegistry;
import java.rmi.server.RMIServerSocketFactory;
import java.util.Map;

import javax.management.remote.JMXConnectorServerFactory;
import javax.management.remote.JMXServiceURL;
import javax.management.remote.rmi.RMIConnectorServer;

import org.apache.cassandra.service.CassandraDaemon;

/**
 * Starts Cassandra with its management (JMX) at one address and port and nowhere else. Java's own switches for that open a second
 * port, on all addresses; Cassandra's know no address but 127.0.0.1, which all nodes would share.
 */
public final class CassandraNode {
    private static final int BACKLOG = 50;

    private CassandraNode() {
    }

    /** Arguments: the address, the port, that at which the lab asks what only the management knows, and that at which nodetool is called. */
    public static void main(String[] arguments) throws Exception {
        listen(arguments[0], Integer.parseInt(arguments[1]));
        Insight.listen(arguments[0], Integer.parseInt(arguments[2]));
        NodetoolDoor.listen(arguments[0], Integer.parseInt(arguments[3]), Integer.parseInt(arguments[1]));
        CassandraDaemon.main(new String[0]);
    }

    private static void listen(String host, int port) throws Exception {
        InetAddress address = InetAddress.getByName(host);
        // Names the address in what clients are told, too.
        System.setProperty("java.rmi.server.hostname", host);
        // The registry and the server share the port, because their factory is the same.
        RMIServerSocketFactory sockets = any -> new ServerSocket(any, BACKLOG, address);
        LocateRegistry.createRegistry(port, null, sockets);
        JMXServiceURL url = new JMXServiceURL(String.format("service:jmx:rmi://%s:%d/jndi/rmi://%s:%d/jmxrmi", host, port, host, port));
        Map<String, Object> environment = Map.of(RMIConnectorServer.RMI_SERVER_SOCKET_FACTORY_ATTRIBUTE, sockets);
        JMXConnectorServerFactory.newJMXConnectorServer(url, environment, ManagementFactory.getPlatformMBeanServer()).start();
    }
}
