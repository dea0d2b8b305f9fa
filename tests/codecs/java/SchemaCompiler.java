import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.xml.sax.InputSource;
import uk.co.real_logic.sbe.ir.Ir;
import uk.co.real_logic.sbe.ir.IrEncoder;
import uk.co.real_logic.sbe.xml.IrGenerator;
import uk.co.real_logic.sbe.xml.ParserOptions;
import uk.co.real_logic.sbe.xml.XmlSchemaParser;

/**
 * Compiles all `.xml` files of a folder with sbe-tool, in one JVM: beside each it writes the `.sbeir`
 * file, or an `.error` file with the reasons why sbe-tool refuses the schema.
 */
public class SchemaCompiler
{
    public static void main(final String[] args) throws Exception
    {
        final File[] schemas = new File(args[0]).listFiles((dir, name) -> name.endsWith(".xml"));
        Arrays.sort(schemas);
        for (final File schema : schemas)
        {
            final String stem = schema.getPath().replaceFirst("\\.xml$", "");
            final ByteArrayOutputStream printed = new ByteArrayOutputStream();
            final ParserOptions options = ParserOptions.builder()
                .stopOnError(false).warningsFatal(false).xIncludeAware(true)
                .errorPrintStream(new PrintStream(printed, true)).build();
            try
            {
                final InputSource source = new InputSource(schema.toURI().toString());
                final Ir ir = new IrGenerator().generate(XmlSchemaParser.parse(source, options));
                try (IrEncoder encoder = new IrEncoder(stem + ".sbeir", ir))
                {
                    encoder.encode();
                }
            }
            catch (final Throwable failure)
            {
                new File(stem + ".sbeir").delete();
                Files.write(Path.of(stem + ".error"),
                    (printed + failure.toString()).getBytes(StandardCharsets.UTF_8));
                continue;
            }
            if (printed.size() > 0)
            {
                Files.write(Path.of(stem + ".warning"), printed.toByteArray());
            }
        }
    }
}
