import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.Locale;

/** Prints the segments of the ids on standard input (UTF-16, hexadecimal), a line for each. */
final class Segments
{
    public static void main(final String[] args) throws IOException
    {
        final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        final StringBuilder out = new StringBuilder();
        for (String text = lines.readLine(); text != null; text = lines.readLine())
        {
            final byte[] units = HexFormat.of().parseHex(text);
            final char[] chars = new char[units.length / 2];
            for (int i = 0; i < chars.length; i++)
            {
                chars[i] = (char)((units[2 * i] & 0xFF) << 8 | units[2 * i + 1] & 0xFF);
            }
            final int hash = new String(chars).toLowerCase(Locale.ROOT).hashCode();
            final StringBuilder line = new StringBuilder();
            for (final String count : args)
            {
                line.append(Math.abs((long)hash % Integer.parseInt(count))).append(' ');
            }
            out.append(line.toString().trim()).append('\n');
        }
        System.out.print(out);
    }
}
