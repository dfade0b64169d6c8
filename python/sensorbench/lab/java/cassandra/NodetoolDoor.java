import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import org.apache.cassandra.tools.INodeProbeFactory;
import org.apache.cassandra.tools.NodeProbe;
import org.apache.cassandra.tools.NodeTool;
import org.apache.cassandra.tools.Output;

/**
 * Runs nodetool within the node, for whoever connects: a Java of its own for each call takes longer than what is called for. A caller sends
 * the words of the command, each on a line, and an empty line. The answer has lines that begin with o (nodetool's output), e (its errors)
 * and, the last one, x (its exit code).
 */
final class NodetoolDoor implements Runnable {
    private static final int BACKLOG = 50;

    private final ServerSocket door;
    private final String host;
    private final int managementPort;

    private NodetoolDoor(ServerSocket door, String host, int managementPort) {
        this.door = door;
        this.host = host;
        this.managementPort = managementPort;
    }

    /** Answers at one address and port as long as the node runs. */
    static void listen(String host, int port, int managementPort) throws IOException {
        ServerSocket door = new ServerSocket(port, BACKLOG, InetAddress.getByName(host));
        start(new NodetoolDoor(door, host, managementPort));
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "nodetool");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        while (true) {
            try {
                Socket caller = door.accept();
                start(() -> answer(caller));
            } catch (IOException gone) {
                // The next one is answered.
            }
        }
    }

    private void answer(Socket caller) {
        try (caller;
                BufferedReader in = new BufferedReader(new InputStreamReader(caller.getInputStream(), StandardCharsets.UTF_8));
                PrintStream out = new PrintStream(caller.getOutputStream(), false, StandardCharsets.UTF_8)) {
            List<String> words = new ArrayList<>(List.of("-h", host, "-p", String.valueOf(managementPort)));
            for (String word = in.readLine(); word != null && !word.isEmpty(); word = in.readLine()) {
                words.add(word);
            }
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            int code;
            try (PrintStream toOutput = new PrintStream(output, false, StandardCharsets.UTF_8);
                    PrintStream toErrors = new PrintStream(errors, false, StandardCharsets.UTF_8)) {
                code = new NodeTool(new Probes(), new Output(toOutput, toErrors)).execute(words.toArray(new String[0]));
            }
            tell(out, 'o', output);
            tell(out, 'e', errors);
            out.print("x" + code + "\n");
        } catch (IOException gone) {
            // The caller does not want to know any more.
        }
    }

    private static void tell(PrintStream out, char kind, ByteArrayOutputStream text) {
        text.toString(StandardCharsets.UTF_8).lines().forEach(line -> out.print(kind + line + "\n"));
    }

    /** Connections to the node's own management. */
    private static final class Probes implements INodeProbeFactory {
        @Override
        public NodeProbe create(String host, int port) throws IOException {
            return new NodeProbe(host, port);
        }

        @Override
        public NodeProbe create(String host, int port, String user, String password) throws IOException {
            return new NodeProbe(host, port, user, password);
        }
    }
}
