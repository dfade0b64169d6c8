import java.io.IOException;
import java.net.URI;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;

/**
 * The local file system without Hadoop's checksums. A file with checksums is written in chunks, and what a chunk lacks to be whole
 * stays in the process: a region server that is killed would lose writes that it has acknowledged. HBase's own files have checksums
 * of their own.
 */
public final class LocalFiles extends LocalFileSystem {
    @Override
    public void initialize(URI name, Configuration configuration) throws IOException {
        super.initialize(name, configuration);
        setWriteChecksum(false);
        setVerifyChecksum(false);
    }
}
