import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.bookkeeper.proto.DataFormats.LedgerMetadataFormat.DigestType;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.util.ByteBufList;

/**
 * Encodes and checks entries with BookKeeper's DigestManager, as requested on stdin.
 *
 * One request a line, one response a line, parts separated by spaces, bytes as hex ("-" for none):
 *   encode LEDGER TYPE PASSWORD ENTRY LAC LENGTH PAYLOAD -> the entry
 *   check LEDGER TYPE PASSWORD ENTRY DATA                -> its payload
 *   confirmed LEDGER TYPE PASSWORD DATA                  -> last add confirmed and length
 *   master PASSWORD                                      -> the master key
 * A failure returns "! exception". Ends when stdin ends.
 */
public final class EntryBridge
{
    private static final HexFormat HEX = HexFormat.of();

    public static void main(final String[] args) throws Exception
    {
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null)
        {
            String answer;
            try
            {
                answer = respond(line.split(" "));
            }
            catch (final Exception ex)
            {
                answer = "! " + ex;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    private static String respond(final String[] request) throws Exception
    {
        if ("master".equals(request[0]))
        {
            return HEX.formatHex(DigestManager.generateMasterKey(bytes(request[1])));
        }
        final DigestManager manager = DigestManager.instantiate(
            Long.parseLong(request[1]),
            bytes(request[3]),
            DigestType.valueOf(request[2]),
            UnpooledByteBufAllocator.DEFAULT,
            false);
        return switch (request[0])
        {
            case "encode" ->
            {
                final ByteBufList entry = (ByteBufList)manager.computeDigestAndPackageForSending(
                    Long.parseLong(request[4]),
                    Long.parseLong(request[5]),
                    Long.parseLong(request[6]),
                    Unpooled.wrappedBuffer(bytes(request[7])),
                    new byte[0],
                    0);
                yield HEX.formatHex(entry.toArray());
            }
            case "check" ->
            {
                final ByteBuf payload = manager.verifyDigestAndReturnData(
                    Long.parseLong(request[4]), Unpooled.wrappedBuffer(bytes(request[5])));
                final byte[] found = new byte[payload.readableBytes()];
                payload.readBytes(found);
                yield HEX.formatHex(found);
            }
            case "confirmed" ->
            {
                final DigestManager.RecoveryData data = manager.verifyDigestAndReturnLastConfirmed(
                    Unpooled.wrappedBuffer(bytes(request[4])));
                yield data.getLastAddConfirmed() + " " + data.getLength();
            }
            default -> throw new IllegalArgumentException(request[0]);
        };
    }

    private static byte[] bytes(final String hex)
    {
        return "-".equals(hex) ? new byte[0] : HEX.parseHex(hex);
    }
}
