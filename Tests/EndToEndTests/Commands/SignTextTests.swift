import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent transactions sign")
struct SignTextTests {
    private static let text = "I have read the <terms> & agree. ✓"

    private static func sign(
        _ words: String..., by desk: DeviceDesk, typing answers: [String] = []
    ) async throws -> Program.Result {
        let result = try await desk.onDevice(["transactions", "sign"] + words, typing: answers)
        DevicePINCommandTests.expectNoSecret(in: result)
        return result
    }

    @Test("A text is shown, signed with the PIN, and others can verify that the user has signed it")
    func story() async throws {
        try await DevicePINCommandTests.run { desk in
            let signed = try await Self.sign(
                Self.text, by: desk, typing: ["sign", DevicePINCommandTests.next, DevicePINCommandTests.pin])
            #expect(signed.status == 0 && signed.output.contains("Approved: accept"), "\(signed.errors)")
            #expect(signed.output.contains(Self.text) && signed.errors.contains("Tries left: 2."), "\(signed)")
            let named = try #require(signed.output.firstMatch(of: /transaction (\S+)\./)?.output.1)
            let (file, key) = try desk.write(try await desk.evidence(of: String(named)))
            let judged = try await desk.user.run("verify", file, "--trust", key)
            #expect(judged.status == 0 && judged.output.contains(Self.text), "\(judged.output)\(judged.errors)")

            // The same text again is another transaction; a script reads nothing but the result.
            let container = try await DevicePINCommandTests.container(desk)
            let again = try await Self.sign(
                Self.text, "--json", "--label", "nothing", "--label", "payments", "--container", container, by: desk,
                typing: ["1", DevicePINCommandTests.pin])
            let result = try JSONValue.parse(again.output)
            #expect(again.status == 0 && result["effect"] == "approve" && result["status"] == "accept")
            #expect(result["transaction"]?.string != String(named) && again.errors.contains(Self.text))
        }
    }

    @Test("A text that is declined, or not answered, is not signed")
    func declined() async throws {
        try await DevicePINCommandTests.run { desk in
            let declined = try await Self.sign(Self.text, "--json", by: desk, typing: ["Decline"])
            #expect(declined.status == 0, "\(declined.errors)")
            #expect(try JSONValue.parse(declined.output)["effect"] == "deny", "\(declined.output)")
            let silent = try await Self.sign(Self.text, by: desk)
            #expect(silent.status == 1 && silent.errors.contains("must be answered"), "\(silent.errors)")
            let unclear = try await Self.sign(Self.text, by: desk, typing: ["3", "0", "-1", "yes", ""])
            #expect(unclear.status == 1 && unclear.errors.contains("one of its choices"), "\(unclear.errors)")
            let noPIN = try await Self.sign(Self.text, by: desk, typing: ["1"])
            #expect(noPIN.status == 1 && noPIN.errors.contains("PIN or password"), "\(noPIN.errors)")
            for result in [silent, unclear, noPIN] { #expect(!result.output.contains("Approved")) }
            #expect(try await DevicePINCommandTests.shown(desk)["tries"] == 3)
        }
    }

    @Test("A text that cannot be shown or signed is refused before anybody is asked, for scripts as JSON")
    func refused() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            let early = try await Self.sign(Self.text, by: desk)
            #expect(early.status == 1 && early.errors.contains("not enrolled"), "\(early.errors)")
            try await desk.enrol()
            for (words, code) in [
                ([""], "invalidArgument"), ([String(repeating: "x", count: 1_001)], "invalidArgument"),
                ([String(repeating: "x", count: 100_000)], "invalidArgument"), (["a\u{1B}[2Jb"], "invalidArgument"),
                (["a\u{202E}b"], "invalidArgument"), ([Self.text, "--label", "nothing"], "invalidArgument"),
                ([Self.text, "--label", ""], "invalidArgument"),
                ([Self.text, "--container", "nothing"], "invalidContainer"),
            ] as [([String], String)] {
                let result = try await desk.onDevice(["transactions", "sign", "--json"] + words)
                #expect(result.status == 1 && result.errors.contains("[\(code)]"), "\(words): \(result.errors)")
                #expect(!result.errors.contains("\u{1B}") && result.errors.utf8.count < 1_000)
                let answer = try JSONValue.parse(result.output)
                #expect(answer["error"]?.string == code && answer["detail"]?.string?.isEmpty == false)
            }
            let longest = try await Self.sign(String(repeating: "x", count: 1_000), by: desk, typing: ["1"])
            #expect(longest.status == 0, "\(longest.errors)")
        }
    }
}
