package sensorbench;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.LongAccumulator;

/** Counts the rows that pass, and the sum of a number of each, in accumulators of Spark; true for all of them. */
public final class Tally implements UDF1<Integer, Boolean> {
    private final LongAccumulator rows;
    private final LongAccumulator sum;

    /** Both are registered with the application's context. */
    public Tally(LongAccumulator rows, LongAccumulator sum) {
        this.rows = rows;
        this.sum = sum;
    }

    /** Makes it a function of a session's SQL; as one that is not deterministic, so that it is called where it stands, once a row. */
    public static void register(SparkSession session, String name, Tally tally) {
        UserDefinedFunction function = functions.udf(tally, DataTypes.BooleanType).asNondeterministic();
        session.udf().register(name, function);
    }

    @Override
    public Boolean call(Integer number) {
        rows.add(1);
        sum.add(number == null ? 0 : number);
        return true;
    }
}
