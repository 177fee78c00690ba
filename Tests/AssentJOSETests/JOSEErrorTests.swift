import AssentJOSE
import Testing

@Suite("JOSEError")
struct JOSEErrorTests {
    private static let codes: [JOSEError.Code] = [
        .malformed, .tooLarge, .unsupportedExtension, .invalidKey, .unsupportedKey, .weakKey, .privateKeyRefused,
        .noMatchingKey, .unsupportedAlgorithm, .algorithmNotAllowed, .algorithmMismatch, .invalidSignature,
        .decryptionFailed, .keyFailed, .wrongType, .wrongIssuer, .wrongAudience, .expired, .notYetValid,
        .issuedInFuture, .tooOld, .missingClaim("sub"), .malformedClaim("exp"), .wrongMethod, .wrongURI,
        .wrongAccessToken, .wrongNonce,
    ]

    @Test("Each code has a sentence of its own, also where nothing more is known")
    func sentences() {
        let details = Self.codes.map { JOSEError($0).detail }
        for detail in details {
            #expect(detail.first?.isUppercase == true && detail.hasSuffix("."), "\(detail)")
        }
        #expect(Set(details).count == Self.codes.count)
        #expect(JOSEError(.missingClaim("sub")).detail.contains("sub"))
    }

    @Test("A suggestion is a sentence, and stands where somebody can do something")
    func suggestions() {
        for suggestion in Self.codes.compactMap({ JOSEError($0).suggestion }) {
            #expect(suggestion.first?.isUppercase == true && suggestion.hasSuffix("."), "\(suggestion)")
        }
        #expect(JOSEError(.weakKey).suggestion != nil)
        #expect(JOSEError(.noMatchingKey).suggestion != nil)
        #expect(JOSEError(.invalidSignature).suggestion == nil)
    }
}
