import AssentCore
import AssentOTP
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("One-time codes of devices: whose, how many and when")
struct SigningCodeGuardTests {
    private let sdk: SDKWorld
    private let container: SigningContainer

    init() async throws {
        sdk = try SDKWorld(
            try await SigningWorld {
                $0.oneTimeKeys = [
                    OneTimeKeySettings(label: "counted", kind: .counter),
                    OneTimeKeySettings(label: "other", kind: .counter),
                ]
            })
        container = try await sdk.enrolled(sdk.device())
    }

    private var world: SigningWorld { sdk.world }

    private func code(_ label: String = "counted") async throws -> String {
        try await container.oneTimeCode(label: label).code.reveal()
    }

    private func check(_ code: String, _ label: String = "counted", user: User? = nil) async throws
        -> OneTimePasswords.Check
    {
        try await world.provider.codes.verify(code, label: label, user: user ?? world.base.ana.user)
    }

    @Test("A device that may not be used gives no codes: blocked, suspect, expired or not confirmed")
    func states() async throws {
        let right = try await code()
        let did = try #require(SigningID(text: container.id))
        for change: SQL in [
            "state = 'BLOCKED'", "state = 'SUSPECT'", "state = 'UNCONFIRMED'",
            "state = 'ACTIVE', expires_at = \(world.provider.now)",
        ] {
            try await world.set(change, of: did)
            #expect(try await check(right) == .notEnrolled, "\(change)")
        }
        try await world.set("state = 'ACTIVE', expires_at = \(world.provider.now + 1)", of: did)
        #expect(try await check(right, user: world.base.ben.user) == .notEnrolled)
        #expect(try await check(right, "other") == .wrong)
        #expect(try await check(right) == .accepted)
    }

    @Test("A counter may be five ahead of what was used last")
    func lookAhead() async throws {
        var codes: [String] = []
        for _ in 0..<8 { codes.append(try await code()) }
        // The sixth after the next one is too far, until one between them is used.
        #expect(try await check(codes[6]) == .wrong)
        #expect(try await check(codes[5]) == .accepted)
        #expect(try await check(codes[6]) == .accepted)
        for used in codes.prefix(7) { #expect(try await check(used) == .wrong) }
        #expect(try await check(codes[7]) == .accepted)
    }

    @Test("Ten wrong codes in an hour lock those of one user, whatever their key; a right one before that forgets them")
    func limit() async throws {
        world.startWindow(7200)
        func wrong(_ label: String = "counted") async throws -> OneTimePasswords.Check {
            try await check(SigningOneTimeCode.wrong(than: try await code(label)), label)
        }
        for _ in 0..<5 {
            #expect(try await wrong() == .wrong)
            #expect(try await check(try await code()) == .accepted)
        }
        for round in 0..<10 { #expect(try await wrong(round.isMultiple(of: 2) ? "counted" : "other") == .wrong) }
        let right = try await code("other")
        #expect(try await check(right, "other") == .locked)
        sdk.clock.advance(by: 3599)
        #expect(try await check(right, "other") == .locked)
        sdk.clock.advance(by: 1)
        #expect(try await check(right, "other") == .accepted)
    }

    @Test("Each check is noted: accepted with the device, refused with what was wrong")
    func audit() async throws {
        let right = try await code()
        #expect(try await check(right) == .accepted)
        _ = try await check(SigningOneTimeCode.wrong(than: right))
        _ = try await check(right, "nothing")
        let records = try await AuditLog(world.base.context).newest(100).reversed().filter { $0.event == .otpVerify }
        #expect(records.map(\.outcome) == [.success, .refused, .refused])
        #expect(records.map { $0.detail["result"]?.string } == [nil, "wrong", "notEnrolled"])
        #expect(records.map { $0.detail["label"]?.string } == ["counted", "counted", "nothing"])
        #expect(records.allSatisfy { $0.userID == world.base.ana.user.id })
        #expect(records.first?.detail["did"]?.string == container.id)
    }
}
