import garage.CarEncoder;
import garage.EmptyEncoder;
import garage.Fuel;
import garage.Gears;
import garage.MessageHeaderEncoder;
import garage.TickEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.agrona.ExpandableArrayBuffer;

/**
 * Encodes messages of tests/support/builders/payload_schema.py with the codecs that sbe-tool
 * generates, and prints each as a line of hex: a car with all its values, one with all nullable
 * values null, a tick, and a message without fields.
 */
public final class CarWriter
{
    public static void main(final String[] args)
    {
        final MessageHeaderEncoder header = new MessageHeaderEncoder();
        print(full(header));
        print(sparse(header));
        final ExpandableArrayBuffer buffer = zeroed();
        final TickEncoder tick = new TickEncoder().wrapAndApplyHeader(buffer, 0, header)
            .at(-1_234_567_890_123L).fuel(Fuel.ELECTRIC);
        print(Arrays.copyOf(buffer.byteArray(), 8 + tick.encodedLength()));
        final EmptyEncoder empty = new EmptyEncoder().wrapAndApplyHeader(buffer, 0, header);
        print(Arrays.copyOf(buffer.byteArray(), 8 + empty.encodedLength()));
    }

    private static byte[] full(final MessageHeaderEncoder header)
    {
        final ExpandableArrayBuffer buffer = zeroed();
        final CarEncoder car = new CarEncoder().wrapAndApplyHeader(buffer, 0, header);
        car.serial(-2L).year(2013).fuel(Fuel.PETROL).gears(Gears.AUTOMATIC)
            .laps(0, 1).laps(1, 4_000_000_000L).laps(2, 3).plate("ab-12");
        car.extras().clear().sunRoof(true).cruiseControl(true);
        car.wide().clear().high(true);
        car.engine().capacity(2000).cylinders((short)200).maker("BMW").wear((byte)-5);
        car.engine().booster().boost((short)-300).gears(Gears.MANUAL);
        car.engine().extras().clear().sportsPack(true);
        car.note("caf\u00e9");
        for (int i = 0; i < 4; i++)
        {
            car.key(i, (short)(250 + i));
        }
        car.share(0.25f).count(8).weight(1234.5).letter((byte)'z').small((byte)-128)
            .reach(Long.MAX_VALUE).maybeLaps(0, (short)-1)
            .maybeLaps(1, CarEncoder.maybeLapsNullValue());
        car.spare().capacity(1).cylinders((short)2).maker("VW").wear(garage.EngineEncoder.wearNullValue());
        car.spare().booster().boost((short)4).gears(Gears.NULL_VAL);
        car.spare().extras().clear();
        car.offsetting(-77);
        car.fuelFiguresCount(2)
            .next().speed(30).usage(35.9f).gears(Gears.MANUAL).usageText("Urb\u00e4n")
            .next().speed(65_000).usage(49.0f).gears(Gears.NULL_VAL).usageText("");
        final CarEncoder.PerformanceFiguresEncoder figures = car.performanceFiguresCount(3);
        final CarEncoder.PerformanceFiguresEncoder.AccelerationEncoder acceleration =
            figures.next().octane((short)95).accelerationCount(2);
        acceleration.next().mph(30).extras().clear().sunRoof(true);
        acceleration.next().mph(60).extras().clear();
        figures.next().octane((short)99).accelerationCount(0);
        figures.next().octane((short)200).accelerationCount(1)
            .next().mph(4_000_000_000L).extras().clear().sportsPack(true).cruiseControl(true);
        car.ownersCount(2).next().owner("Zo\u00eb").next().owner("");
        car.marksCount(1).next().mark((short)-9);
        car.maker("Hond\u20ac").putManual(new byte[]{ 0, -1, 7 }, 0, 3).remark("\u00a3");
        return Arrays.copyOf(buffer.byteArray(), 8 + car.encodedLength());
    }

    private static byte[] sparse(final MessageHeaderEncoder header)
    {
        final ExpandableArrayBuffer buffer = zeroed();
        final CarEncoder car = new CarEncoder().wrapAndApplyHeader(buffer, 0, header);
        car.serial(0).fuel(Fuel.NULL_VAL).gears(Gears.NULL_VAL)
            .share(CarEncoder.shareNullValue()).count(CarEncoder.countNullValue())
            .reach(CarEncoder.reachNullValue());
        car.engine().wear(garage.EngineEncoder.wearNullValue());
        car.fuelFiguresCount(0);
        car.performanceFiguresCount(0);
        car.ownersCount(0);
        car.marksCount(0);
        car.maker("").putManual(new byte[0], 0, 0).remark("");
        return Arrays.copyOf(buffer.byteArray(), 8 + car.encodedLength());
    }

    private static ExpandableArrayBuffer zeroed()
    {
        return new ExpandableArrayBuffer(4096);
    }

    private static void print(final byte[] message)
    {
        System.out.println(HexFormat.of().formatHex(message));
    }
}
