import AssentCore
import AssentOTP
import Testing

@Suite("HOTP")
struct HOTPTests {
    static let secret = Secret("12345678901234567890")

    @Test(
        "RFC 4226 appendix D",
        arguments: zip(
            UInt64(0)...9,
            [
                "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
            ]))
    func vectors(counter: UInt64, code: String) throws {
        #expect(try HOTP(secret: Self.secret).code(counter: counter) == code)
    }

    struct Series: Sendable {
        let secret: String
        let algorithm: OTPAlgorithm
        let codes: [String]
    }

    @Test(
        "AM's clients' codes",
        arguments: [
            Series(secret: "IJQWIZ3FOIQUEYLE", algorithm: .sha256, codes: ["185731", "773759"]),
            Series(secret: "IJQWIZ3FOI======", algorithm: .sha256, codes: ["919304"]),
            Series(
                secret: "kjr6wxe5zsiml3v47dneo6rdiuompawngagaxwdm3ykhzjjvve4ksjpi", algorithm: .sha256,
                codes: ["212759", "582291", "208342", "982745", "219752", "230137", "672139", "958477"]),
            Series(
                secret: "kjr6wxe5zsiml3v47dneo6rdiuompawngagaxwdm3ykhzjjvve4ksjpi", algorithm: .sha1,
                codes: ["980147", "897422", "924028", "581764", "402868", "924866", "900869", "879914"]),
        ])
    func clientVectors(series: Series) throws {
        let secret = Secret(bytes: try #require(Base32.decode(series.secret)))
        let hotp = try HOTP(secret: secret, algorithm: series.algorithm)
        for (counter, code) in series.codes.enumerated() { #expect(hotp.code(counter: UInt64(counter)) == code) }
    }

    @Test("A skipped code is found inside of the look-ahead and not outside, before it or at the end of counting")
    func lookAhead() throws {
        let hotp = try HOTP(secret: Self.secret)
        #expect(hotp.matchingCounter("338314", from: 0, lookAhead: 4) == 4)
        #expect(hotp.matchingCounter("338314", from: 4, lookAhead: 0) == 4)
        #expect(hotp.matchingCounter("338314", from: 0, lookAhead: 3) == nil)
        #expect(hotp.matchingCounter("338314", from: 5, lookAhead: 4) == nil)
        #expect(hotp.matchingCounter("338314", from: 4, lookAhead: -1) == 4)
        #expect(hotp.matchingCounter("338314", from: 0, lookAhead: .max) == 4)
        #expect(hotp.matchingCounter(hotp.code(counter: .max), from: .max, lookAhead: 100) == .max)
    }

    @Test(
        "A code with anything added or left out does not match",
        arguments: ["", "75522", "7552240", " 755224", "７55224"])
    func malformedCode(code: String) throws {
        #expect(try HOTP(secret: Self.secret).matchingCounter(code, from: 0, lookAhead: 10) == nil)
    }

    @Test("Digits and secrets out of bounds are refused")
    func bounds() throws {
        for digits in [-1, 0, 5, 11, Int.max] {
            #expect(throws: OTPError(.invalidDigits)) { try HOTP(secret: Self.secret, digits: digits) }
        }
        #expect(throws: OTPError(.invalidSecret)) { try HOTP(secret: Secret("")) }
        #expect(throws: OTPError(.invalidSecret)) {
            try HOTP(secret: Secret(bytes: [UInt8](repeating: 1, count: 1025)))
        }
        // RFC 4226 appendix D: the truncated value at counter 0 is 1284755224.
        #expect(try HOTP(secret: Self.secret, digits: 10).code(counter: 0) == "1284755224")
        #expect(try HOTP(secret: Self.secret, digits: 8).code(counter: 0) == "84755224")
    }

    @Test("Nothing of the secret shows")
    func redaction() throws {
        var text = ""
        dump(try HOTP(secret: Self.secret), to: &text)
        #expect(!text.contains("1234567890"))
    }
}
