import AssentCore
import AssentOTP
import Testing

@Suite("OTPError")
struct OTPErrorTests {
    @Test("Each code has a sentence of its own, also where nothing more is known")
    func sentences() {
        let codes: [OTPError.Code] = [
            .invalidSecret, .invalidDigits, .invalidPeriod, .invalidCounter, .invalidAlgorithm, .invalidSuite,
            .invalidInput, .invalidURI, .wrongScheme, .missingName, .tooLarge,
        ]
        let errors = codes.map { OTPError($0) }
        for text in errors.map(\.detail) + errors.compactMap(\.suggestion) {
            #expect(text.first?.isUppercase == true && text.hasSuffix("."), "\(text)")
        }
        #expect(Set(errors.map(\.detail)).count == codes.count)
    }

    @Test(
        "What is wrong with a URI is said in a sentence",
        arguments: [
            "otpauth", "https://totp/a?secret=AAAA", "otpauth://totp/a", "otpauth://totp/a?secret=1",
            "otpauth://totp/a?secret=AAAA&secret=AAAA", "otpauth://totp/%?secret=AAAA",
            "otpauth://totp/a?secret=AAAA&digits=3",
            "otpauth://totp/a%00?secret=AAAA", "otpauth://totp/a?secret=AAAA&image=x", "otpauth://totp/?secret=AAAA",
        ])
    func uris(uri: String) throws {
        let refusal = #expect(throws: OTPError.self) { try OTPAuthURI(uri) }
        let error = try #require(refusal)
        #expect(error.detail.first?.isUppercase == true && error.detail.hasSuffix("."), "\(error)")
    }
}
