import AssentCore
import AssentOTP
import Foundation
import Testing

@Suite("TOTP")
struct TOTPTests {
    static let secrets: [OTPAlgorithm: Secret] = [
        .sha1: Secret("12345678901234567890"),
        .sha256: Secret("12345678901234567890123456789012"),
        .sha512: Secret("1234567890123456789012345678901234567890123456789012345678901234"),
    ]

    struct Row: Sendable {
        let time: TimeInterval
        let codes: [OTPAlgorithm: String]
        init(_ time: TimeInterval, _ sha1: String, _ sha256: String, _ sha512: String) {
            self.time = time
            codes = [.sha1: sha1, .sha256: sha256, .sha512: sha512]
        }
    }

    @Test(
        "RFC 6238 appendix B",
        arguments: [
            Row(59, "94287082", "46119246", "90693936"), Row(1_111_111_109, "07081804", "68084774", "25091201"),
            Row(1_111_111_111, "14050471", "67062674", "99943326"),
            Row(1_234_567_890, "89005924", "91819424", "93441116"),
            Row(2_000_000_000, "69279037", "90698825", "38618901"),
            Row(20_000_000_000, "65353130", "77737706", "47863826"),
        ])
    func vectors(row: Row) throws {
        for (algorithm, code) in row.codes {
            let secret = try #require(Self.secrets[algorithm])
            let totp = try TOTP(secret: secret, algorithm: algorithm, digits: 8)
            #expect(totp.code(at: Date(timeIntervalSince1970: row.time)) == code)
        }
    }

    private static func totp(period: Int = 30, start: TimeInterval = 0) throws -> TOTP {
        try TOTP(
            secret: Secret("12345678901234567890"), digits: 8, period: period,
            start: Date(timeIntervalSince1970: start))
    }

    @Test("A code is good for its window and no longer", arguments: [-2, -1, 0, 1, 2])
    func window(distance: Int64) throws {
        let totp = try Self.totp()
        let now = Date(timeIntervalSince1970: 1_111_111_111)
        let step = totp.step(at: now)
        let code = totp.hotp.code(counter: UInt64(step + distance))
        #expect(totp.matchingStep(code, at: now, window: 1) == (abs(distance) <= 1 ? step + distance : nil))
        #expect(totp.matchingStep(code, at: now, window: 2) == step + distance)
        #expect(totp.matchingStep(code, at: now, window: 0) == (distance == 0 ? step : nil))
    }

    @Test("A code is accepted once, and none before one that was accepted")
    func replay() throws {
        let totp = try Self.totp()
        let now = Date(timeIntervalSince1970: 1_111_111_111)
        let code = totp.code(at: now)
        let accepted = try #require(totp.matchingStep(code, at: now))
        #expect(totp.matchingStep(code, at: now, after: accepted) == nil)
        #expect(totp.matchingStep(totp.code(at: now - 30), at: now, after: accepted) == nil)
        #expect(totp.matchingStep(totp.code(at: now + 30), at: now, after: accepted) == accepted + 1)
        #expect(totp.matchingStep(code, at: now, after: accepted - 1) == accepted)
    }

    @Test(
        "A wrong code, one too short and one too long match nowhere",
        arguments: ["00000000", "", "1405047", "140504710"])
    func wrong(code: String) throws {
        #expect(try Self.totp().matchingStep(code, at: Date(timeIntervalSince1970: 1_111_111_111), window: 10) == nil)
    }

    @Test("Times outside of any calendar neither trap nor match backwards")
    func extremes() throws {
        let totp = try Self.totp()
        for time in [-1e300, -1, 0, 1e300, .infinity] {
            let date = Date(timeIntervalSince1970: time)
            _ = totp.code(at: date)
            #expect(totp.matchingStep("x", at: date, window: .max) == nil)
            #expect(totp.step(at: date) >= 0)
        }
        #expect(totp.matchingStep(totp.hotp.code(counter: 0), at: Date(timeIntervalSince1970: 0)) == 0)
    }

    @Test("Steps begin at T0 and have the period's length")
    func steps() throws {
        let totp = try Self.totp(period: 60, start: 1000)
        #expect(totp.step(at: Date(timeIntervalSince1970: 1059.9)) == 0)
        #expect(totp.step(at: Date(timeIntervalSince1970: 1060)) == 1)
        #expect(totp.end(ofStepAt: Date(timeIntervalSince1970: 1060)) == Date(timeIntervalSince1970: 1120))
        #expect(totp.code(at: Date(timeIntervalSince1970: 1060)) == "94287082")
    }

    @Test("A period out of bounds is refused", arguments: [Int.min, -1, 0, 301, Int.max])
    func period(period: Int) {
        #expect(throws: OTPError(.invalidPeriod)) { try Self.totp(period: period) }
    }
}
