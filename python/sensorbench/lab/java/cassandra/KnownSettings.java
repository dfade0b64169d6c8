import java.util.Map;
import java.util.TreeMap;

import org.apache.cassandra.config.Config;
import org.apache.cassandra.config.Loader;
import org.apache.cassandra.config.Properties;
import org.apache.cassandra.config.Replacement;
import org.apache.cassandra.config.Replacements;

/**
 * Prints every key of cassandra.yaml that this version knows, one in a line: the key, a tab, and the key's name today,
 * which is another one where a key was renamed and the old name is still read.
 */
public final class KnownSettings {
    private KnownSettings() {
    }

    public static void main(String[] arguments) {
        Map<String, String> known = new TreeMap<>();
        Loader loader = Properties.defaultLoader();
        loader.getProperties(Config.class).keySet().forEach(key -> known.put(key, key));
        // Keys within keys may be written with dots.
        loader.flatten(Config.class).keySet().forEach(key -> known.put(key, key));
        Map<String, Replacement> renamed = Replacements.getNameReplacements(Config.class).getOrDefault(Config.class, Map.of());
        renamed.forEach((old, replacement) -> known.putIfAbsent(old, replacement.newName));
        known.forEach((key, today) -> System.out.println(key + "\t" + today));
    }
}
