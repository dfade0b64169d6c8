package sensorbench;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableOutputFormat;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/**
 * A table of HBase as a data source of Spark, by HBase's own input and output formats: a partition a region. Rows lie as the driver of
 * sensorbench writes them (its composite keys, one column family). Options: `quorum` and `port` of ZooKeeper; `table`; `columns`, each
 * NAME:TYPE or NAME:TYPE:key, with the types `text` and `integer`. Overwriting empties the table first.
 */
public final class HbaseTable implements RelationProvider, CreatableRelationProvider {
    private static final byte[] FAMILY = {'d'};

    @Override
    public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map<String, String> options) {
        return new Relation(context, new Place(options));
    }

    @Override
    public BaseRelation createRelation(
            SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> options, Dataset<Row> rows) {
        Place place = new Place(options);
        try {
            if (mode == SaveMode.Overwrite) {
                empty(place);
            }
            Configuration configuration = place.configuration();
            configuration.set(TableOutputFormat.OUTPUT_TABLE, place.table);
            Job job = Job.getInstance(configuration);
            job.setOutputFormatClass(TableOutputFormat.class);
            job.setOutputKeyClass(ImmutableBytesWritable.class);
            job.setOutputValueClass(Put.class);
            List<Column> columns = place.columns;
            String[] names = columns.stream().map(column -> column.name).toArray(String[]::new);
            rows.selectExpr(names).toJavaRDD()
                    .mapToPair(row -> new Tuple2<>(new ImmutableBytesWritable(), put(columns, row)))
                    .saveAsNewAPIHadoopDataset(job.getConfiguration());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return new Relation(context, place);
    }

    private static void empty(Place place) throws IOException {
        TableName name = TableName.valueOf(place.table);
        try (Connection connection = ConnectionFactory.createConnection(place.configuration()); Admin admin = connection.getAdmin()) {
            admin.disableTable(name);
            admin.truncateTable(name, true);
        }
    }

    private static Put put(List<Column> columns, Row row) {
        ByteArrayOutputStream key = new ByteArrayOutputStream();
        for (int place = 0; place < columns.size(); place++) {
            if (columns.get(place).isKey) {
                appendKey(key, row.get(place));
            }
        }
        Put put = new Put(key.toByteArray());
        for (int place = 0; place < columns.size(); place++) {
            Column column = columns.get(place);
            if (!column.isKey) {
                put.addColumn(FAMILY, bytes(column.name), cell(row.get(place)));
            }
        }
        return put;
    }

    private static Row row(List<Column> columns, Result result) {
        Object[] values = new Object[columns.size()];
        ByteBuffer key = ByteBuffer.wrap(result.getRow());
        for (int place = 0; place < values.length; place++) {
            Column column = columns.get(place);
            values[place] = column.isKey ? readKey(key, column) : value(result.getValue(FAMILY, bytes(column.name)), column);
        }
        return RowFactory.create(values);
    }

    /** Text ends with a zero, a zero within being followed by 255; integers have as few bytes as they need, after their number. */
    private static void appendKey(ByteArrayOutputStream key, Object value) {
        if (value instanceof String) {
            for (byte one : bytes((String) value)) {
                key.write(one);
                if (one == 0) {
                    key.write(0xff);
                }
            }
            key.write(0);
            return;
        }
        long number = ((Number) value).longValue();
        if (number < 0) {
            throw new IllegalArgumentException("keys of sensorbench's jobs are not negative: " + number);
        }
        int length = (64 - Long.numberOfLeadingZeros(number) + 7) / 8;
        key.write(0x14 + length);
        key.write(ByteBuffer.allocate(8).putLong(number).array(), 8 - length, length);
    }

    private static Object readKey(ByteBuffer key, Column column) {
        if (column.isText) {
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            for (byte one = key.get(); one != 0 || (key.hasRemaining() && key.get(key.position()) == (byte) 0xff); one = key.get()) {
                text.write(one);
                if (one == 0) {
                    key.get();
                }
            }
            return new String(text.toByteArray(), StandardCharsets.UTF_8);
        }
        int length = key.get() - 0x14;
        long number = 0;
        for (int place = 0; place < length; place++) {
            number = number << 8 | key.get() & 0xff;
        }
        return number;
    }

    private static byte[] cell(Object value) {
        return value instanceof String
                ? bytes((String) value)
                : ByteBuffer.allocate(8).putLong(((Number) value).longValue() ^ Long.MIN_VALUE).array();
    }

    private static Object value(byte[] cell, Column column) {
        if (cell == null) {
            return null;
        }
        return column.isText ? new String(cell, StandardCharsets.UTF_8) : (Object) (ByteBuffer.wrap(cell).getLong() ^ Long.MIN_VALUE);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A column of a table. */
    private static final class Column implements Serializable {
        final String name;
        final boolean isText;
        final boolean isKey;

        Column(String told) {
            String[] parts = told.split(":");
            name = parts[0];
            isText = parts[1].equals("text");
            isKey = parts.length > 2 && parts[2].equals("key");
        }
    }

    /** Where a table is, and what its columns are. */
    private static final class Place {
        final String table;
        final List<Column> columns = new ArrayList<>();
        private final String quorum;
        private final String port;

        Place(scala.collection.immutable.Map<String, String> options) {
            table = options.apply("table");
            quorum = options.apply("quorum");
            port = options.apply("port");
            for (String told : options.apply("columns").split(" ")) {
                columns.add(new Column(told));
            }
        }

        Configuration configuration() {
            Configuration configuration = HBaseConfiguration.create();
            configuration.set("hbase.zookeeper.quorum", quorum);
            configuration.set("hbase.zookeeper.property.clientPort", port);
            return configuration;
        }
    }

    /** The rows of a table. */
    private static final class Relation extends BaseRelation implements TableScan {
        private final SQLContext context;
        private final Place place;

        Relation(SQLContext context, Place place) {
            this.context = context;
            this.place = place;
        }

        @Override
        public SQLContext sqlContext() {
            return context;
        }

        @Override
        public StructType schema() {
            StructType schema = new StructType();
            for (Column column : place.columns) {
                schema = schema.add(column.name, column.isText ? DataTypes.StringType : DataTypes.LongType);
            }
            return schema;
        }

        @Override
        public RDD<Row> buildScan() {
            Configuration configuration = place.configuration();
            configuration.set(TableInputFormat.INPUT_TABLE, place.table);
            List<Column> columns = place.columns;
            return JavaSparkContext.fromSparkContext(context.sparkContext())
                    .newAPIHadoopRDD(configuration, TableInputFormat.class, ImmutableBytesWritable.class, Result.class)
                    .values()
                    .map(result -> row(columns, result))
                    .rdd();
        }
    }
}
