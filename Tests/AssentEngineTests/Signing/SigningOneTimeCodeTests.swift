import AssentCore
import AssentOTP
import AssentSigning
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("One-time codes of signing devices")
struct SigningOneTimeCodeTests {
    let sdk: SDKWorld
    let device: SigningDevice
    let container: SigningContainer

    init() async throws {
        let suite = try OCRASuite("OCRA-1:HOTP-SHA256-8:C-QN08")
        sdk = try SDKWorld(
            try await SigningWorld {
                var counted = OneTimeKeySettings(label: "counted", kind: .counter)
                counted.digits = 8
                $0.oneTimeKeys = [
                    OneTimeKeySettings(label: "timed", kind: .time(period: 30)), counted,
                    OneTimeKeySettings(label: "asked", kind: .challenge(suite)),
                ]
            })
        device = sdk.device()
        container = try await sdk.enrolled(device)
    }

    private func check(_ code: SigningOneTimeCode, _ label: String) async throws -> OneTimePasswords.Check {
        try await sdk.world.provider.codes.verify(
            code.code.reveal(), label: label, user: sdk.world.base.ana.user)
    }

    @Test("The server's keys come with the enrolment, and make codes by time, by counter and for a challenge")
    func kinds() async throws {
        #expect(try await container.oneTimeKeys().map(\.label) == ["asked", "counted", "timed"])
        #expect(try await container.oneTimeKeys().map(\.kind) == [.challenge, .counter, .time])
        #expect(try await container.oneTimeCode(label: "counted").code.count == 8)
        let timed = try await container.oneTimeCode(label: "timed")
        #expect(timed.code.count == 6 && timed.expiresAt.map { $0 > sdk.clock.now } == true)
        let one = try await container.oneTimeCode(label: "asked", challenge: "12345678")
        let two = try await container.oneTimeCode(label: "asked", challenge: "12345678")
        #expect(one.code != two.code)
        let wrong: [(String?, String?)] = [
            (nil, nil), ("none", nil), ("timed", "1"), ("asked", nil), ("asked", "letters"),
        ]
        for (label, challenge) in wrong {
            await #expect(throws: SigningError(.invalidArgument)) {
                try await container.oneTimeCode(label: label, challenge: challenge)
            }
        }
    }

    @Test("A code is accepted once, and a counter goes on after codes that were not used")
    func once() async throws {
        let timed = try await container.oneTimeCode(label: "timed")
        #expect(try await check(timed, "timed") == .accepted)
        #expect(try await check(timed, "timed") == .replayed)
        sdk.clock.advance(by: 30)
        #expect(try await check(try await container.oneTimeCode(label: "timed"), "timed") == .accepted)
        let skipped = try await container.oneTimeCode(label: "counted")
        let used = try await sdk.device().container(container.id).oneTimeCode(label: "counted")
        #expect(try await check(used, "counted") == .accepted)
        #expect(try await check(skipped, "counted") == .wrong)
        #expect(try await check(used, "counted") == .wrong)
        // Its challenge is not known here.
        let answer = try await container.oneTimeCode(label: "asked", challenge: "1")
        #expect(try await check(answer, "asked") == .wrong)
        #expect(try await check(timed, "nothing") == .notEnrolled)
    }

    @Test("100 uses of one code at once: one counts")
    func race() async throws {
        let code = try await container.oneTimeCode(label: "counted")
        let accepted = try await withThrowingTaskGroup(of: OneTimePasswords.Check.self) { group in
            for _ in 0..<10 { group.addTask { try await check(code, "counted") } }
            return try await group.reduce(into: 0) { $0 += $1 == .accepted ? 1 : 0 }
        }
        #expect(accepted == 1)
    }

    @Test("Ten wrong codes lock, and the right one is not looked at")
    func lock() async throws {
        let right = try await container.oneTimeCode(label: "counted").code.reveal()
        let wrong = SigningOneTimeCode.wrong(than: right)
        for _ in 0..<10 {
            let found = try await sdk.world.provider.codes.verify(
                wrong, label: "counted", user: sdk.world.base.ana.user)
            #expect(found == .wrong)
        }
        let locked = try await sdk.world.provider.codes.verify(
            right, label: "counted", user: sdk.world.base.ana.user)
        #expect(locked == .locked)
    }

    @Test("A user who is let in again has all tries back")
    func letIn() async throws {
        let base = sdk.world.base
        let right = try await container.oneTimeCode(label: "counted")
        let wrong = SigningOneTimeCode.wrong(than: right.code.reveal())
        for _ in 0...10 {
            _ = try await sdk.world.provider.codes.verify(wrong, label: "counted", user: base.ana.user)
        }
        #expect(try await check(right, "counted") == .locked)
        _ = try await base.database.run(
            SQLStatement("UPDATE users SET roles = 'admin' WHERE id = \(base.ana.user.id)"))
        let admin = try #require(try await Sessions(base.context).live(id: base.ana.id))
        try await Administration(base.context).setActive(true, of: admin.user.username, by: admin)
        #expect(try await check(right, "counted") == .accepted)
    }

    @Test("A container that is deleted has no codes, here and at the server")
    func deleted() async throws {
        let code = try await container.oneTimeCode(label: "timed")
        #expect(try await container.delete())
        #expect(try await check(code, "timed") == .notEnrolled)
        #expect(try await sdk.world.provider.codes.keys(of: container.id).isEmpty)
        await #expect(throws: (any Error).self) { try await container.oneTimeCode(label: "timed") }
    }

    @Test("A user's name that no device reads out of a URI gives way to the container's number, in each kind of key")
    func unreadableNames() throws {
        let suite = try OCRASuite("OCRA-1:HOTP-SHA256-8:QN08")
        for kind in [.time(period: 30), .counter, .challenge(suite)] as [OneTimeKeySettings.Kind] {
            let key = OneTimeKeySettings(label: "key", kind: kind)
            for (name, account) in [("ana", "ana"), ("a<b", "123"), ("ana>", "123"), ("javascript:a", "123")] {
                let uri = try key.makeURI(issuer: "Bank", account: name, serial: "123", random: SystemRandom())
                let read =
                    switch kind {
                    case .time, .counter: try OTPAuthURI(uri.reveal()).account
                    case .challenge: try OCRAAuthURI(uri.reveal()).account
                    }
                #expect(read == account)
            }
        }
    }

    @Test("Settings of keys that no device could use are refused")
    func settings() throws {
        var settings = sdk.world.provider.settings
        let bad: [[OneTimeKeySettings]] = [
            [OneTimeKeySettings(label: "Ä", kind: .counter)], [OneTimeKeySettings(label: "payments", kind: .counter)],
            [OneTimeKeySettings(label: "a", kind: .time(period: 0))],
            (0..<5).map { OneTimeKeySettings(label: "k\($0)", kind: .counter) },
            [OneTimeKeySettings(label: "a", kind: .challenge(try OCRASuite("OCRA-1:HOTP-SHA1-6:QN08-PSHA1")))],
        ]
        for keys in bad {
            settings.oneTimeKeys = keys
            #expect(!settings.faults().isEmpty, "\(keys)")
        }
    }
}

extension SigningOneTimeCode {
    /// A code of the same length that is another one.
    static func wrong(than code: String) -> String {
        String(code.map { $0 == "9" ? "0" : Character(String((Int(String($0)) ?? 0) + 1)) })
    }
}
