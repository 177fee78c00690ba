import AssentCore
import Testing

@Suite("BearerCredentials")
struct BearerCredentialsTests {
    @Test(
        "A token is read behind the scheme, whatever the scheme's case and however many spaces",
        arguments: ["Bearer abc.d-e_f~g+h/i==", "bearer abc.d-e_f~g+h/i==", "BEARER   abc.d-e_f~g+h/i=="])
    func token(field: String) {
        #expect(BearerCredentials([field]) == .token(Secret("abc.d-e_f~g+h/i==")))
    }

    @Test(
        "A field that has the scheme and not one token behind it is malformed",
        arguments: [
            "Bearer", "Bearer ", "bearer a b", "Bearer a,b", "Bearer =", "Bearer a=b", "Bearer \u{E9}", "Bearer a\tb",
        ])
    func malformed(field: String) {
        #expect(BearerCredentials([field]) == .malformed)
    }

    @Test("A second Authorization beside a bearer token makes both of no use")
    func several() {
        #expect(BearerCredentials(["Bearer a", "Bearer b"]) == .malformed)
        #expect(BearerCredentials(["Basic YTpi", "Bearer b"]) == .malformed)
    }

    @Test(
        "Another scheme, or none, is no bearer token",
        arguments: [[], [""], ["Basic YTpi"], ["Bearers a"], [" Bearer a"]])
    func absent(fields: [String]) {
        #expect(BearerCredentials(fields) == .absent)
    }

    @Test("A token may have 16 KiB and no byte more")
    func bound() {
        let longest = String(repeating: "a", count: BearerCredentials.limit)
        #expect(BearerCredentials(["Bearer " + longest]) == .token(Secret(longest)))
        #expect(BearerCredentials(["Bearer a" + longest]) == .malformed)
    }

    @Test("What is written is read again")
    func writing() {
        #expect(BearerCredentials([BearerCredentials.field(Secret("x.y"))]) == .token(Secret("x.y")))
    }
}
