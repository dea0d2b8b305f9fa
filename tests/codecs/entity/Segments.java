import java.util.HexFormat;
import java.util.Locale;
import java.util.Scanner;

/** Prints the segments of the ids on standard input (UTF-16, hexadecimal), a line for each. */
final class Segments
{
    public static void main(final String[] args)
    {
        final Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine())
        {
            final byte[] units = HexFormat.of().parseHex(lines.nextLine());
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
            System.out.println(line.toString().trim());
        }
    }
}
