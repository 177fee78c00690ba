import AssentCore
import Testing

@Suite("TokenCredentials")
struct TokenCredentialsTests {
    private static let text = "abc.d-e_f~g+h/i=="

    @Test(
        "A token is read behind its scheme, whatever the scheme's case and however many spaces",
        arguments: [
            ("Bearer \(text)", TokenScheme.bearer), ("bearer \(text)", .bearer), ("BEARER   \(text)", .bearer),
            ("DPoP \(text)", .dpop), ("dpop \(text)", .dpop), ("DPOP  \(text) ", .dpop), ("dPoP \(text)", .dpop),
        ])
    func token(field: String, scheme: TokenScheme) {
        #expect(TokenCredentials([field]) == .token(Secret(Self.text), scheme))
    }

    @Test(
        "A field that has a scheme and not one token behind it is malformed",
        arguments: [
            "", " ", " a b", " a,b", " =", " a=b", " \u{E9}", " a\tb", " a, Bearer b", " a, DPoP b", "\ta", "\t a",
            " \ta",
        ])
    func malformed(rest: String) {
        for scheme in TokenScheme.allCases {
            #expect(TokenCredentials([scheme.rawValue + rest]) == .malformed(scheme))
        }
    }

    @Test("A second Authorization makes both of no use, whatever they are")
    func several() {
        #expect(TokenCredentials(["Bearer a", "Bearer b"]) == .malformed(.bearer))
        #expect(TokenCredentials(["Basic YTpi", "Bearer b"]) == .malformed(.bearer))
        #expect(TokenCredentials(["DPoP a", "DPoP a"]) == .malformed(.dpop))
        #expect(TokenCredentials(["Bearer a", "dpop a"]) == .malformed(.dpop))
        #expect(TokenCredentials(["Basic YTpi", "Basic YTpi"]) == .malformed(.bearer))
    }

    @Test(
        "Another scheme, or none, is no token",
        arguments: [[], [""], ["Basic YTpi"], ["Bearers a"], [" Bearer a"], ["DPoPs a"], [" DPoP a"], ["DPo a"]])
    func absent(fields: [String]) {
        #expect(TokenCredentials(fields) == .absent)
        #expect(TokenCredentials(fields).scheme == nil)
    }

    @Test("A token may have 16 KiB and no byte more", arguments: TokenScheme.allCases)
    func bound(scheme: TokenScheme) {
        let longest = String(repeating: "a", count: TokenCredentials.limit)
        #expect(TokenCredentials(["\(scheme.rawValue) " + longest]) == .token(Secret(longest), scheme))
        #expect(TokenCredentials(["\(scheme.rawValue) a" + longest]) == .malformed(scheme))
    }

    @Test("What a client writes is read again")
    func writing() {
        #expect(TokenCredentials([TokenScheme.bearer.field(Secret("x.y"))]) == .token(Secret("x.y"), .bearer))
    }
}
