import AssentCore
import AssentOTP
import Foundation
import Testing

@Suite("otpauth URIs")
struct OTPAuthURITests {
    static let secret = "secret=JBSWY3DPEHPK3PXP"

    @Test("The Key URI format's example")
    func example() throws {
        let uri = try OTPAuthURI(
            "otpauth://totp/ACME%20Co:john.doe@email.com?secret=HXDMVJECJJWSRB3HWIZR4IFUGFTMXBOZ&issuer=ACME%20Co"
                + "&algorithm=SHA1&digits=6&period=30")
        #expect(uri.issuer == "ACME Co" && uri.account == "john.doe@email.com")
        #expect(uri.moving == .time(period: 30) && uri.algorithm == .sha1 && uri.digits == 6)
        #expect(uri.secret.count == 20)
        #expect(
            try uri.uri().reveal()
                == "otpauth://totp/ACME%20Co:john.doe@email.com?secret=HXDMVJECJJWSRB3HWIZR4IFUGFTMXBOZ&issuer=ACME%20Co"
        )
        #expect(try uri.totp() != nil && uri.hotp() == nil)
    }

    @Test(
        "Issuer and account as AM's clients find them",
        arguments: [
            ("Forge:joe?\(secret)", "Forge", "joe"), ("Forge:joe?\(secret)&issuer=Other", "Other", "joe"),
            ("Forge%3Ajoe?\(secret)", "Forge", "joe"), ("joe?\(secret)", "joe", "joe"),
            ("?\(secret)&issuer=Forge", "Forge", "Untitled"), ("Forge:?\(secret)", "Forge", "Untitled"),
            (":joe?\(secret)", "joe", "joe"), ("Forge:%20joe?\(secret)", "Forge", "joe"),
            ("a%3Ab:c%3Ad?\(secret)", "a:b", "c:d"), ("joe+x@y?\(secret)&issuer=A+B", "A+B", "joe+x@y"),
        ])
    func names(rest: String, issuer: String, account: String) throws {
        let uri = try OTPAuthURI("otpauth://totp/\(rest)")
        #expect(uri.issuer == issuer)
        #expect(uri.account == account)
    }

    @Test("An account of ours may have < and > in its name, which the URI encodes; elsewhere they are refused")
    func markup() throws {
        let uri = try OTPAuthURI(issuer: "Bank", account: "<eve>", secret: Secret(bytes: [UInt8](1...20)))
        #expect(try uri.uri().reveal().hasPrefix("otpauth://totp/Bank:%3Ceve%3E?"))
        #expect(throws: OTPError.self) { try OTPAuthURI(uri.uri().reveal()) }
    }

    @Test("What is written is read again")
    func roundTrip() throws {
        var uri = try OTPAuthURI(
            issuer: "Bänk: A/S & Co", account: "jo:e+é@x", secret: Secret(bytes: [1, 2, 3, 4, 5, 6, 7]),
            moving: .counter(UInt64(Int64.max)), algorithm: .sha512, digits: 8)
        uri.userID = "user/ü"
        uri.resourceID = "device-1"
        uri.policies = JSONObject([.init(name: "biometricAvailable", value: [:])])
        uri.image = "https://x.example/logo.png?a=b&c=d"
        uri.color = "519387"
        let read = try OTPAuthURI(uri.uri().reveal())
        #expect(read.issuer == uri.issuer && read.account == uri.account && read.secret == uri.secret)
        #expect(read.moving == uri.moving && read.algorithm == uri.algorithm && read.digits == uri.digits)
        #expect(read.userID == uri.userID && read.resourceID == uri.resourceID && read.policies == uri.policies)
        #expect(read.image == uri.image && read.color == uri.color)
        #expect(try read.hotp() != nil && read.totp() == nil)
    }

    @Test("HOTP's counter is always written, also 0")
    func counter() throws {
        let uri = try OTPAuthURI(issuer: "I", account: "a", secret: Secret("12345"), moving: .counter(0))
        #expect(try uri.uri().reveal() == "otpauth://hotp/I:a?secret=GEZDGNBV&issuer=I&counter=0")
    }

    @Test(
        "A bad URI is refused with its reason",
        arguments: [
            ("http://totp/a?\(secret)", OTPError(.wrongScheme)), ("otpauth://push/a?\(secret)", OTPError(.wrongScheme)),
            ("otpauth:totp/a?\(secret)", OTPError(.invalidURI)), ("", OTPError(.invalidURI)),
            ("otpauth://totp/a", OTPError(.invalidSecret)), ("otpauth://totp/a?secret=", OTPError(.invalidSecret)),
            ("otpauth://totp/a?secret=JBSW0", OTPError(.invalidSecret)),
            ("otpauth://totp/?\(secret)", OTPError(.missingName)),
            ("otpauth://totp/a?\(secret)&digits=2", OTPError(.invalidDigits)),
            ("otpauth://totp/a?\(secret)&digits=+6", OTPError(.invalidDigits)),
            ("otpauth://totp/a?\(secret)&digits=99999999999999999999", OTPError(.invalidDigits)),
            ("otpauth://totp/a?\(secret)&period=0", OTPError(.invalidPeriod)),
            ("otpauth://totp/a?\(secret)&period=-30", OTPError(.invalidPeriod)),
            ("otpauth://totp/a?\(secret)&period=301", OTPError(.invalidPeriod)),
            ("otpauth://hotp/a?\(secret)&counter=-1", OTPError(.invalidCounter)),
            ("otpauth://hotp/a?\(secret)&counter=9223372036854775808", OTPError(.invalidCounter)),
            ("otpauth://totp/a?\(secret)&algorithm=MD5", OTPError(.invalidAlgorithm)),
            ("otpauth://totp/a?\(secret)&algorithm=SHA%20256", OTPError(.invalidAlgorithm)),
            ("otpauth://totp/a?\(secret)&\(secret)", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&issuer=%zz", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&issuer=%C3", OTPError(.invalidURI)),
            ("otpauth://totp/a%00b?\(secret)", OTPError(.invalidURI)),
            ("otpauth://totp/a%E2%80%AEb?\(secret)", OTPError(.invalidURI)),
            ("otpauth://totp/%3Cscript%3E?\(secret)", OTPError(.invalidURI)),
            ("otpauth://totp/..%2Fa?\(secret)", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&issuer=JavaScript:x", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&image=javascript:x", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&image=file:///etc/passwd", OTPError(.invalidURI)),
            ("otpauth://totp/a?\(secret)&policies=bm90IGpzb24", OTPError(.invalidURI)),
            ("otpauth://totp/\(String(repeating: "a", count: 1025))?\(secret)", OTPError(.tooLarge)),
            ("otpauth://totp/a?secret=\(String(repeating: "A", count: 5000))", OTPError(.tooLarge)),
            ("otpauth://totp/a?secret=\(String(repeating: "A", count: 2000))", OTPError(.invalidSecret)),
            ("otpauth://totp/a?" + (0..<40).map { "p\($0)=1" }.joined(separator: "&"), OTPError(.tooLarge)),
        ])
    func refused(uri: String, error: OTPError) {
        #expect(throws: error) { try OTPAuthURI(uri) }
    }

    @Test(
        "In mfauth an issuer that happens to be a word of base 64's alphabet stays as it is",
        arguments: ["ACME", "Visa", "GitLab", "Example"])
    func plainIssuer(issuer: String) throws {
        let uri = try OTPAuthURI("mfauth://totp/a:b?\(Self.secret)&issuer=\(issuer)")
        #expect(uri.issuer == issuer)
    }

    @Test("Nothing of the secret shows")
    func redaction() throws {
        let uri = try OTPAuthURI("otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
        var text = "\(uri) \(try uri.uri())"
        dump(uri, to: &text)
        #expect(!text.contains("1234567890") && !text.contains("GEZDGNBV"))
    }

    private static let fixtures = ProcessInfo.processInfo.environment["ASSENT_FIXTURES"]

    @Test("The clients' own examples", .enabled(if: fixtures != nil, "ASSENT_FIXTURES is not set"))
    func clientExamples() throws {
        let path = try #require(Self.fixtures) + "/ping/oath-uris.json"
        let json = try JSONValue.parse(Array(Data(contentsOf: URL(filePath: path))))
        func uri(_ name: String) throws -> String { try #require(json[name]?.string) }
        for name in ["totp", "mfauth", "uid", "oid"] {
            let parsed = try OTPAuthURI(uri(name))
            #expect(parsed.issuer == "Example" && parsed.account == "user@example.com")
            #expect(parsed.moving == .time(period: 30) && parsed.secret.count == 10)
        }
        #expect(try OTPAuthURI(uri("hotp")).moving == .counter(1))
        #expect(try OTPAuthURI(uri("uid")).userID == "user123")
        #expect(try OTPAuthURI(uri("oid")).resourceID == "device-12345")
        #expect(try OTPAuthURI(uri("malformedPadding")).secret.count == 4)
        #expect(throws: OTPError(.invalidDigits)) { try OTPAuthURI(uri("badDigits")) }
        #expect(throws: OTPError(.invalidAlgorithm)) { try OTPAuthURI(uri("badAlgorithm")) }
    }
}
