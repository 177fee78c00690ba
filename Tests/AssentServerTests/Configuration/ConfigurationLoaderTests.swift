import AssentConfiguration
import AssentCore
import AssentEngine
import AssentTesting
import Foundation
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import StoreTesting
import Testing

@testable import AssentServer

@Suite(
    "A configuration that cannot work is refused with file, line and what to do",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ConfigurationLoaderTests {
    /// The key set of a client whose key is not on its curve.
    private static let offTheCurve: String = {
        let zero = Base64URL.encode([UInt8](repeating: 0, count: 32))
        return "jwks: {keys: [{kty: EC, crv: P-256, x: \(zero), y: \(zero)}]}"
    }()

    private static let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)

    /// A change to a good file, and what must be said about it.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let find: String
        let replacement: String
        /// A text that stands in the line that must be named; `nil` when it is the whole file's.
        let marker: String?
        let message: String

        init(_ find: String, _ replacement: String, at marker: String?, _ message: String) {
            self.find = find
            self.replacement = replacement
            self.marker = marker
            self.message = message
        }

        var testDescription: String { message }
    }

    /// An app with a line that is wrong.
    private static func app(_ id: String, _ line: String, at marker: String? = nil, _ message: String) -> Mistake {
        let redirect = line.contains("redirectURIs") ? "" : "        redirectURIs: [\"http://127.0.0.1/cb\"]\n"
        let lines = "    apps:\n      \(id):\n\(redirect)        \(line)\n    clients:\n      bank-app:"
        return Mistake("    clients:\n      bank-app:", lines, at: marker ?? line.prefix { $0 != ":" } + ":", message)
    }

    @Test(
        "A mistake is named where it stands",
        arguments: [
            Mistake("passwordCost: 1024", "trustFiles: {bank: nowhere}", at: "trustFiles:", "must name a directory"),
            Mistake("passwordCost: 1024", "trustFiles: {a/b: .}", at: "trustFiles:", "a name has 1 to 64 letters"),
            Mistake("passwordCost: 1024", "pasword: 1024", at: "pasword:", "pasword: unknown key"),
            Mistake(
                "passwordCost: 1024", "administrationRealm: gamma", at: "administrationRealm:",
                "the file has no realm /gamma"),
            Mistake("maxMinutes: 120", "maxMinute: 120", at: "maxMinute:", "unknown key"),
            Mistake(
                "publicURL: https://localhost:0/am", "publicUrl: https://localhost:0/am", at: "publicUrl:",
                "publicUrl: unknown key; write publicURL"),
            Mistake("\nrealms:", "\nRealms:", at: "Realms:", "Realms: unknown key; write realms"),
            Mistake("maxBodyBytes: 4096", "maxBody: 4096", at: "maxBody:", "unknown key"),
            Mistake(
                "passHeaders: [X-Custom]", "payloadEncryption: never", at: "payloadEncryption:",
                "can be allowed (the default) or required"),
            Mistake(
                "passHeaders: [X-Custom]", "websocket: true\n      payloadEncryption: required",
                at: "payloadEncryption:",
                "cannot be required beside websocket"),
            Mistake(
                "idTokenAlgorithm: ES256", "idTokenAlgorithm: HS256", at: "idTokenAlgorithm: HS256",
                "HS256 is not supported; RS256 (the default) or ES256"),
            Mistake(
                "idTokenAlgorithm: ES256", "accessTokenAlgorithm: PS256", at: "accessTokenAlgorithm: PS256",
                "PS256 is not supported; ES256 (the default) or RS256"),
            Mistake(
                "idTokenAlgorithm: ES256", "dpop: {nonce: always}", at: "dpop:",
                "must be offered (the default) or required"),
            Mistake("idTokenAlgorithm: ES256", "dpop: {bound: true}", at: "dpop:", "unknown key"),
            Mistake("idTokenAlgorithm: ES256", "dpopBound: maybe", at: "dpopBound:", "must be true or false"),
            Mistake(
                "idTokenAlgorithm: ES256", "requirePKCE: false", at: "requirePKCE: false",
                "a public client always needs PKCE"),
            Mistake(
                "idTokenAlgorithm: ES256", "idTokenClaims: [phone_number]", at: "bank-app:",
                "the claim phone_number needs the scope phone"),
            Mistake(
                "idTokenAlgorithm: ES256", "idTokenClaims: [mail]", at: "bank-app:",
                "mail is not a claim that this server knows"),
            app("pay~x", "", at: "pay~x", "an app's id has 1 to 64 letters, digits and - . _"),
            app("pay", "registration: closed", "must be token (the default), statement or open"),
            app("pay", "versions: {\"1\": {status: enabled}}", "must say by default: {status: …} what all others"),
            app(
                "pay", "versions: {default: {status: off}}", at: "status: off",
                "the status of a version is one of enabled, loginOnly, disabled"),
            app(
                "pay", "versions: {default: {status: enabled, payloadEncryption: on}}", at: "payloadEncryption: on",
                "the payloadEncryption of a version is one of off, allowed, required"),
            app(
                "pay", "versions: {default: {status: enabled, payloadEncryption: Required}}",
                at: "payloadEncryption: Required", "the payloadEncryption of a version is one of"),
            app(
                "pay", "versions: {default: {payloadEncryption: required}}", at: "payloadEncryption: required",
                "status"),
            app(
                "pay", "versions: {default: {status: enabled, payloadEncryption: [off]}}",
                at: "payloadEncryption: [off]", "must be a text"),
            app(
                "pay", "versions: {default: {status: enabled}, \"1 0\": {status: enabled}}", at: "versions:",
                "a version has 1 to 64 visible ASCII characters"),
            app(
                "pay", "registration: statement", at: "      pay:", "registration by statement needs softwareStatements"
            ),
            app("pay", "softwareStatements: {issuer: a, jwks: {keys: []}}", at: "softwareS", "1 to 32 are possible"),
            app("pay", "secretHash: x", "unknown key"), app("pay", "jwksURI: \"https://a.example\"", "unknown key"),
            app("pay", "introspectsAll: true", "unknown key"),
            app("pay", "allowedOrigins: []", at: "allowedOrigins: []", "unknown key"),
            app(
                "pay", "registrationDays: 6", at: "      pay:",
                "registrationDays are fewer than a refresh token is valid"),
            app("pay", "maximumInstances: 0", "maximumInstances"),
            app(
                "pay", "redirectURIs: [\"http://pay.example/\"]", at: "      pay:",
                "which is for loopback addresses only"),
            Mistake(
                "    clients:\n      bank-app:",
                "    apps:\n      pay: {redirectURIs: [\"http://127.0.0.1/cb\"]}\n    clients:\n      bank~app:",
                at: "bank~app:", "no client can have ~ in its id where there are apps"),
            Mistake(
                "  beta:", "  root:", at: "  root:", "root cannot be a realm: AM's clients call the top realm root"),
            Mistake("  beta:", "  /root/beta:", at: "  /root/beta:", "Write / for the top realm"),
            Mistake("  beta:", "  beta//gamma:", at: "  beta//gamma:", "an empty part between slashes"),
            Mistake("  beta:", "  be ta:", at: "  be ta:", "be ta cannot be a realm: use letters of ASCII"),
            Mistake("  beta:", "  bêta:", at: "  bêta:", "bêta cannot be a realm: use letters of ASCII"),
            Mistake("  beta:", "  be%74a:", at: "  be%74a:", "be%74a cannot be a realm: use letters of ASCII"),
            Mistake("  beta:", "  beta/..:", at: "  beta/..:", ". and .. lead elsewhere in a URL"),
            Mistake("  beta:", "  /alpha:", at: "  /alpha:", "/alpha is there twice, with a slash in front"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\ncookieSameSite: Strict", at: "cookieSameSite:",
                "can be one of: Lax, None"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\ncookiePartitioned: true", at: "cookiePartitioned:",
                "belongs to cookieSameSite: None"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\ntrustedProxies: [10.0.0.0/8, 10.0.0.5/8]",
                at: "trustedProxies", "10.0.0.5/8 is neither an address nor a prefix without bits behind it"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\ntrustedProxies: [proxy.example]", at: "trustedProxies",
                "proxy.example is neither an address"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\ntrustedProxyField: Forwarded", at: "trustedProxyField",
                "belongs to trustedProxies"),
            Mistake(
                "passwordCost: 1024",
                "passwordCost: 1024\ntrustedProxies: [192.0.2.7]\ntrustedProxyField: X-Real-IP",
                at: "trustedProxyField", "can be one of: X-Forwarded-For, Forwarded"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\nchecksPerAddress: 0", at: "checksPerAddress", "from 1"),
            Mistake(
                "kind: authentication",
                """
                kind: authentication
                          statuses:
                            - {name: sure, label: Okay, effect: approve}
                            - {name: never, label: okay, effect: deny}
                """, at: "signing:", "two statuses have the same label, or labels that look alike (en)"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\nhsts: maybe", at: "hsts: maybe", "must be true or false"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\npages: {logo: /nowhere.png, name: B}", at: "logo: /nowhere",
                "/nowhere.png cannot be read"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\npages: {logo: /etc/passwd, name: B}", at: "logo: /etc",
                "must be a PNG, JPEG, WebP or SVG"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\npages: {language: xx}", at: "language: xx", "no language xx"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\npages: {languages: {Deutsch: {}}}", at: "Deutsch",
                "is not a language"),
            Mistake(
                "http://localhost:3000", "http://intranet", at: "http://intranet", "http://intranet has no TLS"),
            Mistake(
                #"["https://partner.example"]"#, #"["https://partner.example/app"]"#, at: "https://partner.example/app",
                "is not an origin"),
            Mistake("public: true", "public: true, realm: alpha", at: "public: true", "a public route has no realm"),
            Mistake(
                "public: true", "public: true, senderConstrained: true", at: "public: true",
                "a public route has no senderConstrained"),
            Mistake(
                #"value: "urn:bank:level1""#, #"value: "urn:bank:code""#, at: #"value: "urn:bank:code", level"#,
                "the realm has the acr urn:bank:code twice"),
            Mistake(#"value: "urn:bank:level1""#, #"value: "a b""#, at: #"value: "a b""#, "visible ASCII"),
            Mistake("journey: Login}", "journey: Confirm}", at: "journey: Confirm}", "nobody can reach it"),
            Mistake("journey: Login}", "journey: Lgin}", at: "journey: Lgin}", "nobody can reach it"),
            Mistake("level: 1}", "level: 7}", at: "level: 7}", "nobody can reach it"),
            Mistake("level: 1}", "level: 1, journey: Login}", at: "level: 1, journey", "an acr has one of"),
            Mistake("{accounts: See <your> accounts}", "{accounts: }", at: "scopeTexts", "accounts"),
            Mistake("consentImplied: false", "consentDays: 0", at: "consentDays", "from 1"),
            Mistake("mediaType: text/plain", "mediaType: text", at: "mediaType: text", "one type without parameters"),
            Mistake(
                "mediaType: text/plain", "mediaType: text/plain;charset=utf-8", at: "mediaType: text",
                "without parameters"
            ),
            Mistake(
                "stripHeaders: [X-Employee]", "stripHeaders: [X Employee]", at: "stripHeaders:", "X Employee cannot be"),
            Mistake(
                "passHeaders: [X-Custom]", "accepts: [user, robot]", at: "accepts:",
                "the route bank cannot accept robot; known: user, stateless, implicit, device, client, anyone"),
            Mistake(
                "passHeaders: [X-Custom]", "accepts: [Device]", at: "accepts:", "the route bank cannot accept Device"),
            Mistake("passHeaders: [X-Custom]", "accepts: []", at: "accepts:", "the route bank must accept somebody"),
            Mistake(
                "passHeaders: [X-Custom]", "accepts: [anyone, device]", at: "accepts:",
                "the route bank accepts anyone, which stands alone"),
            Mistake(
                "public: true", "public: true, accepts: [device]", at: "accepts: [device]",
                "the route open is public, so accepts can only be [anyone]"),
            Mistake("path: /owned", "path: /Scoped", at: "path: /Scoped", "the route scoped answers /scoped already"),
            Mistake("path: /owned", "path:  /", at: "path:  /", "the route bank answers / already"),
            Mistake("path: /owned", "path: /own;ed", at: "path: /own;ed", "has a semicolon in its path: no request"),
            Mistake("path: /owned", "path: /own%2fed", at: "path: /own%2fed", "has an encoded slash"),
            Mistake("path: /owned", "path: /ówned", at: "path: /ówned", "has a character that must be escaped"),
            Mistake(
                "path: /owned", "path: /own%40ed", at: "path: /own%40ed",
                "must be written as requests are compared: /own@ed"),
            Mistake(
                "path: /owned", "path: /own%65d", at: "path: /own%65d",
                "must be written as requests are compared: /owned"),
            Mistake(
                "path: /owned", "path: /own//ed", at: "path: /own//ed",
                "must be written as requests are compared: /own/ed"),
            Mistake("path: /owned", "path: /owned?a=1", at: "path: /owned?a=1", "must not have a query"),
            Mistake(
                "defaultJourney: Login", "defaultJourney: Lgin", at: "defaultJourney: Lgin",
                "there is no journey Lgin; known: Confirm, Login, Nod, Quick"),
            Mistake(
                "defaultJourney: Login", "defaultJourney: Confirm", at: "defaultJourney: Confirm",
                "Confirm is transactionalOnly: nobody could sign in without naming a journey"),
            Mistake("entry: credentials", "entry: nowhere", at: "entry: nowhere", "nowhere"),
            Mistake(
                #"check: {type: DataStoreDecisionNode, outcomes: {"true": code, "false": failure}}"#,
                #"check: {type: DataStoreDecisionNode, outcomes: {"true": code}}"#,
                at: #"outcomes: {"true": code}"#, "false"),
            Mistake("{\"true\": code,", "{\"true\": lost,", at: "{\"true\": lost,", "lost"),
            Mistake("type: OathTokenVerifierNode", "type: OathNode", at: "type: OathNode", "OathNode"),
            Mistake(
                "strategySpecifier: Confirm,", "strategySpecifier: Confrim,", at: "strategySpecifier: Confrim",
                "Confrim"),
            Mistake("bind: [method, query, body]", "bind: [method, mood]", at: "bind: [method, mood]", "mood"),
            Mistake(
                "policySet: bank}", "policySet: bnk}", at: "policySet: bnk", "no policy set bnk; known: bank, rest"),
            Mistake(
                "realm: alpha, policySet", "realm: gamma, policySet", at: "realm: gamma", "the file has no realm /gamma"
            ),
            Mistake("  beta:\n", "  alpha:\n", at: nil, "alpha"),
            Mistake("listen: {host: 127.0.0.1,", "listen: {host: 0.0.0.0,", at: "0.0.0.0", "loopback only"),
            Mistake("localhost:0/am", "localhost:0/am?x=1", at: "publicURL", "publicURL: must be an https URL"),
            Mistake(
                "publicURL: https://localhost:0/am", "publicURL: http://localhost/am", at: "publicURL", "https"),
            Mistake("passwordCost: 1024", "passwordCost: 1000", at: "passwordCost", "from 1024"),
            Mistake("passwordCost: 1024", "passwordCost: 5000", at: "passwordCost", "power of two"),
            Mistake("passwordCost: 1024", "passwordCost: 2097152", at: "passwordCost", "to 1048576"),
            Mistake("{username: ben, ", "{username: ana, ", at: "{username: ana, credentials: generated}", "ana twice"),
            Mistake(
                "{username: ben, ", "{username: Ana, ", at: "{username: Ana, credentials: generated}",
                "upper and lower case make no difference"),
            Mistake("passHeaders: [X-Custom]", "passHeaders: [Via]", at: "passHeaders:", "Via cannot pass"),
            Mistake("passHeaders: [X-Custom]", "passHeaders: [DPoP]", at: "passHeaders:", "DPoP cannot pass"),
            Mistake("passHeaders: [X-Custom]", "passHeaders: [X Custom]", at: "passHeaders:", "X Custom cannot be"),
            Mistake("credentials: generated}", "credentials: guess}", at: "credentials: guess", "only be: generated"),
            Mistake("roles: [pep]", "roles: [king]", at: "roles: [king]", "unknown role king; known: admin"),
            Mistake(
                "upstream: http://127.0.0.1:9080", "upstream: ftp://x", at: "upstream: ftp", "http://127.0.0.1:9080"),
            Mistake(
                "attributes: {mail: ana@bank.example, givenName: Ana, sn: Alvarez}", "attributes: mail",
                at: "attributes: mail", "attributes: must be a mapping"),
            Mistake(
                "{username: ben, credentials: generated}", "{username: ben, passwordHash: $scrypt$ln=5}",
                at: "passwordHash:", "assent admin hash-password"),
            Mistake(
                #"["https://app.bank.example"]"#, #"["https://app.bank.example/"]"#,
                at: #"["https://app.bank.example/"]"#,
                "https://app.bank.example/ is not an origin"),
            Mistake(
                "name: Bank of Example", "name: Bank\n      policies: {pin: {mode: silent}}",
                at: "mode: silent",
                "silent is not supported"),
            Mistake(
                "name: Bank of Example", "name: Bank\n      policies: {pin: {mode: assisted, lock: {max: 11}}}",
                at: "max: 11", "lock.max"),
            Mistake(
                "name: Bank of Example", "name: Bank\n      policies: {pin: {mode: local, tries: 3}}",
                at: "tries: 3", "unknown key"),
            Mistake(
                "name: Bank of Example",
                """
                name: Bank
                      policies: {pin: {mode: local}, other: {mode: local}}
                      keys: [{usage: sign, label: a, policy: pin}, {usage: auth, label: b, policy: other}]
                """, at: nil, "keys of several policies in one slot"),
            Mistake(
                "introspectsAll: true", "secretFile: x", at: "secretFile: x", "one of secretFile, secretHash"),
            Mistake(
                "introspectsAll: true", "jwks: {keys: []}", at: "jwks: {keys: []}",
                "a client has one of secretFile, secretHash, jwks, jwksURI"),
            Mistake(
                "idTokenAlgorithm: ES256", "jwksURI: \"http://app.example/jwks\"", at: "jwksURI:",
                "must be an https URL"),
            Mistake(
                "idTokenAlgorithm: ES256", "jwksURI: \"https://a:b@app.example/jwks\"", at: "jwksURI:",
                "must be an https URL"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\noutbound: {privateHosts: [\"a:1\"]}", at: "outbound:",
                "a:1 is not a host name"),
            Mistake(
                "passwordCost: 1024", "passwordCost: 1024\noutbound: {hosts: [a]}", at: "outbound:", "unknown key"),
            Mistake(
                "idTokenAlgorithm: ES256", "jwks: {keys: []}", at: "jwks: {keys: []}",
                "has 0 keys; 1 to 32 are possible"),
            Mistake("idTokenAlgorithm: ES256", "jwks: keys.json", at: "jwks: keys.json", "must be a key set"),
            Mistake(
                "idTokenAlgorithm: ES256", "jwks: {keys: [{kty: EC, crv: P-256, x: AA, y: AA, d: AA}]}", at: "d: AA",
                "Only the public key belongs here"),
            Mistake(
                "idTokenAlgorithm: ES256", "jwks: {keys: [{kty: oct, k: AAAA}]}", at: "k: AAAA", "key 1 cannot be used"),
            Mistake("idTokenAlgorithm: ES256", offTheCurve, at: "crv: P-256, x", "key 1 cannot be used"),
            Mistake("idTokenAlgorithm: ES256", "jwks: {keys: [{kty: oct, k: AAAA, kty: EC}]}", at: nil, "twice"),
            Mistake(
                "idTokenAlgorithm: ES256", "assertionAlgorithms: [ES256]", at: "assertionAlgorithms:",
                "is for clients with keys"),
            Mistake(
                "idTokenAlgorithm: ES256", "assertionAlgorithms: [HS256]\n        jwks: {keys: []}",
                at: "assertionAlgorithms:", "HS256 is not supported; known: ES256, PS256, EdDSA, RS256"),
        ])
    func mistakes(_ mistake: Mistake) throws {
        let range = try #require(Self.good.range(of: mistake.find))
        let text = Self.good.replacingCharacters(in: range, with: mistake.replacement)
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        }
        #expect(error?.file == "/etc/assent.yaml")
        #expect(error?.message.contains(mistake.message) == true, "\(error?.message ?? "")")
        if let marker = mistake.marker {
            let line = text.components(separatedBy: "\n").firstIndex { $0.contains(marker) }
            #expect(error?.line == line.map { $0 + 1 }, "\(error?.description ?? "")")
        } else {
            #expect(error?.line != nil)
        }
    }

    @Test("What proofs need can be said for a realm and for a client")
    func proofs() throws {
        func read(_ find: String, _ replacement: String) throws -> RealmConfiguration {
            let range = try #require(Self.good.range(of: find))
            let text = Self.good.replacingCharacters(in: range, with: replacement)
            return try #require(
                ServerConfiguration.parse(text, file: "/etc/assent.yaml").realms.first { $0.name == "/alpha" })
        }
        let plain = try read("idTokenAlgorithm: ES256", "idTokenAlgorithm: ES256")
        #expect(!plain.requiresNonce && plain.clients.allSatisfy { !$0.requiresNonce && !$0.requiresProof })
        let client = try read(
            "idTokenAlgorithm: ES256", "dpop: {nonce: required}\n        dpopBound: true"
        ).clients.filter { $0.requiresNonce && $0.requiresProof }
        #expect(client.map(\.id) == ["bank-app"])
        #expect(
            try read("    defaultJourney: Login", "    dpop: {nonce: required}\n    defaultJourney: Login")
                .requiresNonce)
        #expect(
            try !read("    defaultJourney: Login", "    dpop: {nonce: offered}\n    defaultJourney: Login")
                .requiresNonce)
    }

    @Test("Without development: true, what only development may is refused")
    func production() throws {
        func message(_ change: (inout String) -> Void) throws -> String? {
            var text = Self.good.replacing("development: true\n", with: "")
            change(&text)
            let error = #expect(throws: ConfigurationError.self) {
                try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
            }
            #expect(error?.line != nil)
            return error?.message
        }
        for cost in [1024, 32_768, 65_536] {
            let text = try message { $0.replace("passwordCost: 1024", with: "passwordCost: \(cost)") }
            #expect(text == "passwordCost: a cost below 131072 needs development: true")
        }
        #expect(
            try message { $0.replace("passwordCost: 1024", with: "passwordCost: 131072") }?
                .contains("write passwordHash instead, which 'assent admin hash-password' makes") == true)
        #expect(
            try message {
                $0.replace("passwordCost: 1024", with: "passwordCost: 131072")
                $0.replace(", credentials: generated", with: "")
            }?.contains("tls is missing: name certificate and privateKey") == true)
        let complete = Self.good.replacing(
            "development: true\n", with: "tls: {certificate: c.pem, privateKey: k.pem}\n"
        )
        .replacing("passwordCost: 1024\n", with: "").replacing(", credentials: generated", with: "")
        .replacing("host: 127.0.0.1", with: "host: 0.0.0.0")
        let read = try ServerConfiguration.parse(complete, file: "/etc/assent.yaml")
        #expect(read.passwordCost == 131_072 && !read.isDevelopment && read.host == "0.0.0.0")
        #expect(read.tls == .files(certificate: "/etc/c.pem", privateKey: "/etc/k.pem"))
        for (text, isDevelopment) in [(complete, false), (Self.good, true)] {
            for (line, sendsHSTS) in [("", !isDevelopment), ("hsts: true", true), ("hsts: false", false)] {
                let read = try ServerConfiguration.parse(line + "\n" + text, file: "/etc/assent.yaml")
                #expect(read.sendsHSTS == sendsHSTS, "\(line), development: \(isDevelopment)")
            }
        }
    }

    @Test("What is set of tokens, sessions and proxies is what the server gets, and what is not set has its default")
    func values() throws {
        func read(_ changes: [(String, String)]) throws -> ServerConfiguration {
            let text = changes.reduce(Self.good) { $0.replacing($1.0, with: $1.1) }
            return try ServerConfiguration.parse(text, file: "/etc/assent/assent.yaml")
        }
        func client(_ configuration: ServerConfiguration) throws -> OAuthClient {
            let realm = try #require(configuration.realms.first { $0.name == "/alpha" })
            return try #require(realm.clients.first { $0.id == "bank-app" })
        }
        let plain = try read([])
        #expect(try client(plain).accessTokenAlgorithm == .es256 && !client(plain).checksSessions)
        #expect(plain.realms.allSatisfy { $0.tokensKeepSessions })
        #expect(plain.trustedProxies == TrustedProxies() && plain.passwordPolicy.checksPerAddress == nil)
        let changed = try read([
            (
                "idTokenAlgorithm: ES256\n        accessTokenSeconds: 600",
                """
                idTokenAlgorithm: ES256
                        accessTokenAlgorithm: RS256
                        sessionCheck: true
                        accessTokenSeconds: 600
                """
            ),
            ("idleMinutes: 30}", "idleMinutes: 30, tokensKeepAlive: false}"),
            (
                "passwordCost: 1024",
                """
                passwordCost: 1024
                checksPerAddress: 7
                trustedProxies: [192.0.2.7, "2001:db8:7::/64"]
                trustedProxyField: forwarded
                """
            ),
        ])
        #expect(try client(changed).accessTokenAlgorithm == .rs256 && client(changed).checksSessions)
        #expect(changed.realms.first { $0.name == "/alpha" }?.tokensKeepSessions == false)
        #expect(changed.trustedProxies.networks.map(\.text) == ["192.0.2.7", "2001:db8:7::/64"])
        #expect(changed.trustedProxies.field == .forwarded && changed.passwordPolicy.checksPerAddress == 7)
    }

    @Test("A missing file, a directory, bytes that are no text and too many of them are refused")
    func files() throws {
        let directory = NSTemporaryDirectory() + "/assent-config-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try Data([0xFF, 0xFE, 0x00]).write(to: URL(fileURLWithPath: directory + "/bytes.yaml"))
        try Data(repeating: 0x20, count: 2 << 20).write(to: URL(fileURLWithPath: directory + "/large.yaml"))
        for name in ["missing.yaml", "", "bytes.yaml", "large.yaml"] {
            let path = name.isEmpty ? directory : directory + "/" + name
            let error = #expect(throws: ConfigurationError.self) { try ServerConfiguration.load(file: path) }
            #expect(error?.file == path)
            #expect(error?.message.isEmpty == false)
        }
    }

    @Test("The example of the bank can be loaded, and it is what its comments say")
    func example() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let configuration = try ServerConfiguration.load(file: root.path + "/Examples/bank/assent.yaml")
        #expect(configuration.isDevelopment && configuration.tls == .generated && configuration.host == "127.0.0.1")
        #expect(configuration.realms.map(\.name) == ["/alpha"])
        #expect(configuration.realms.first?.journeys.map(\.name) == ["Login", "ConfirmTransfer"])
        #expect(configuration.gateway?.routes.map(\.name) == ["bank", "greeting", "app-info", "status"])
        #expect(configuration.firstPublicClient?.id == "bank-app")
    }

    @Test("A server that fails before it listens tells those who wait for its endpoints, and lets another one start")
    func failsFirst() async throws {
        let directory = NSTemporaryDirectory() + "/assent-fails-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var configuration = try ServerConfiguration.parse(Self.good, file: directory + "/assent.yaml")
        // The file cannot say so.
        configuration.gateway?.setUpstream("nowhere", ofRoute: "bank")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let server = try await IdentityServer(configuration: configuration, logger: logger)
        let running = Task { try await ServiceGroup(services: [server], logger: logger).run() }
        await #expect(throws: WireError.self) { try await server.endpoints }
        await #expect(throws: WireError.self) { try await running.value }
        // The first one is still there, but has neither the directory nor the database any more.
        configuration.gateway?.setUpstream("http://127.0.0.1:1", ofRoute: "bank")
        let second = try await IdentityServer(configuration: configuration, logger: logger)
        #expect(server !== second)
    }

    @Test(
        "A taken port ends the start with its number, its key and what to do, whenever one asks",
        arguments: [false, true])
    func takenPort(isGateway: Bool) async throws {
        let taken = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(taken.localAddress?.port)
        let directory = NSTemporaryDirectory() + "/assent-taken-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        var configuration = try ServerConfiguration.parse(Self.good, file: directory + "/assent.yaml")
        if isGateway { configuration.gateway?.port = port } else { configuration.port = port }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let server = try await IdentityServer(configuration: configuration, logger: logger)
        let running = Task { try await ServiceGroup(services: [server], logger: logger).run() }
        let place = "port \(port) (\(isGateway ? "gateway" : "listen").port)"
        for hasEnded in [false, true] {
            let error = await #expect(throws: ConfigurationError.self) { try await server.endpoints }
            #expect(error?.message == "\(place) is taken: stop the program that uses it, or set another port there")
            #expect(error?.file == directory + "/assent.yaml")
            if !hasEnded { await #expect(throws: ConfigurationError.self) { try await running.value } }
        }
        try await taken.close()
        // Nobody has seen the generated credentials, so they must not have been stored: the next start makes and shows
        // them. On any port: another test may have that one by now.
        if isGateway { configuration.gateway?.port = 0 } else { configuration.port = 0 }
        let second = try await IdentityServer(configuration: configuration, logger: logger)
        let group = ServiceGroup(services: [second], logger: logger)
        let serving = Task { try await group.run() }
        let endpoints = try await second.endpoints
        #expect(endpoints.accounts.map(\.username).sorted() == ["ana", "ben", "bob", "pat"])
        #expect(endpoints.bootstrapFile != nil)
        await group.triggerGracefulShutdown()
        try await serving.value
        try FileManager.default.removeItem(atPath: directory)
    }
}
