import AssentCore
import AssentPayload
import Crypto
import TestSupport
import Testing

/// `Tests/Payload/pe1.py`, made from the page alone, as a second opinion.
@Suite("Payload encryption against the implementation in Python", .enabled(if: PythonPeer.mustRun))
struct PythonPayloadTests {
    @Test("It opens our frames of every length, and refuses them damaged, as we do")
    func frames() throws {
        let secrets = try PayloadVectors.client()
        let bound = PayloadVectors.head(.request, 3, salt: 1).binding
        var asked: [JSONValue] = []
        var expected: [JSONValue] = []
        for count in [0, 1, 255, 65_536, 65_537, 200_000] {
            let plaintext = SystemRandom().bytes(count)
            let frame = try secrets.sealed(
                FrameHead(.reply, session: secrets.session, number: 3, random: SystemRandom()), plaintext, bound: bound)
            var damaged = frame
            damaged[frame.count / 2] ^= 1
            for frame in [frame, damaged] {
                asked.append([
                    "kind": 2, "key": .string(secrets.reply.withUnsafeBytes { Hex.encode($0) }),
                    "session": .string(Hex.encode(secrets.session)), "bound": .string(Hex.encode(bound)),
                    "frame": .string(Hex.encode(frame)),
                ])
            }
            expected += [["number": 3, "plain": .string(Hex.encode(plaintext))], nil]
        }
        let input = asked.flatMap { $0.serializedBytes() + [UInt8(ascii: "\n")] }
        let lines = try PythonPeer.run(script: "Payload/pe1.py", ["open"], input: input).split(separator: "\n")
        try #require(lines.count == expected.count)
        for (line, expected) in zip(lines, expected) {
            let answer = try JSONValue.parse(Array(line.utf8))
            if expected == nil { #expect(answer["refused"] != nil) } else { #expect(answer == expected) }
        }
    }
}
