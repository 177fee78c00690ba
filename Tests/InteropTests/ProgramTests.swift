import AssentCore
import AssentJOSE
import AssentPeers
import AssentServer
import AssentTokens
import Foundation
import HTTPTypes
import Testing

/// docs/connect-a-program.md, line by line: each program runs with the very settings that stand there, and the server
/// has the very clients.
@Suite("Programs set up by docs/connect-a-program.md")
struct ProgramTests {
    /// The page, cut at its headings.
    struct Page: Sendable {
        static let issuer = "https://am.bank.example/am/oauth2/realms/root/realms/alpha"
        let path: String
        let text: String

        init() throws {
            path = URL(fileURLWithPath: Peer.scripts).appending(path: "../../../docs/connect-a-program.md").path
            text = try String(contentsOfFile: path, encoding: .utf8)
        }

        /// The block in a language, of a section or of all.
        func blocks(_ language: String, of section: String? = nil) -> [String] {
            let parts = text.components(separatedBy: "\n## ").dropFirst()
            return parts.filter { part in section.map { part.hasPrefix($0 + "\n") } ?? true }.flatMap { part in
                part.components(separatedBy: "```\(language)\n").dropFirst().compactMap {
                    $0.components(separatedBy: "\n```").first.map { $0 + "\n" }
                }
            }
        }
    }

    private static let secret = Secret(SystemRandom().token())

    /// Hosts whose programs the tests run at an address of this machine.
    private static let local = ["https://intranet.bank.example", "https://extranet.bank.example"]

    /// The key of the client that has one.
    static let clientKey = Result { try SoftwareSigningKey.generate(.rs256, rsaBits: 2048) }

    /// Runs a server that has the clients of the page.
    static func run(
        clock: (any WallClock)? = nil, _ body: (OurServer, Page) async throws -> Void
    ) async throws {
        let page = try Page()
        let key = try JWK(publicKeyInfo: clientKey.get().publicKeyInfo).json
        let clients = local.reduce(page.blocks("yaml").joined()) { $0.replacing($1, with: "http://127.0.0.1") }
            .replacing("(the modulus)", with: try #require(key["n"]?.string))
        let files = clients.matches(of: /secretFile: (\S+)/).map { String($0.1) }
        try await OurServer.run(
            clients: clients, secrets: Dictionary(files.map { ($0, secret) }, uniquingKeysWith: { $1 }), clock: clock
        ) { try await body($0, page) }
    }

    private func job(_ server: OurServer, _ page: Page, _ section: String, host: String = "") throws -> JSONValue {
        guard case .object(var job) = try server.job(client: "", authentication: "none") else { return .null }
        job["page"] = .string(page.path)
        job["section"] = .string(section)
        job["secret"] = .string(Self.secret.reveal())
        job["host"] = .string("https://\(host).bank.example")
        return .object(job)
    }

    @Test("Each section of the page is run by a test")
    func sections() throws {
        let page = try Page()
        let tested = Set(Self.programs.map(\.0) + ["An API that checks tokens with PyJWT", "idpyoidc with DPoP"])
        let python = page.text.components(separatedBy: "\n## ").filter { $0.contains("```python") }
            .compactMap { $0.components(separatedBy: "\n").first }
        #expect(Set(python) == tested)
        #expect(page.blocks("apache").count == 4)
        // What runs a section takes its first block of a language: a second one would be run by nobody.
        for section in page.text.components(separatedBy: "\n## ").compactMap({ $0.split(separator: "\n").first }) {
            for language in ["yaml", "python", "apache"] {
                #expect(page.blocks(language, of: String(section)).count <= 1, "\(section): \(language)")
            }
        }
    }

    static let programs: [(String, String, JSONValue)] = [
        ("Flask and Authlib", "wiki", ["email": "ana@bank.example", "name": "Ana Alvarez"]),
        ("Flask-OIDC", "notes", ["email": "ana@bank.example"]),
        ("requests-oauthlib", "report", ["name": "Ana Alvarez"]),
        ("Authlib alone", "tool", ["name": "Ana Alvarez"]),
        ("django-allauth", "shop", ["email": "ana@bank.example"]),
        ("social-auth-app-django", "forum", ["email": "ana@bank.example"]),
        ("mozilla-django-oidc", "library", ["email": "ana@bank.example"]),
        // MSAL asks for offline_access, too, which the client may not have.
        ("MSAL for Python", "desktop", ["scope": "accounts openid profile", "issuer": true]),
        ("Authlib with DPoP", "vault", proved),
    ]

    /// What a program with proofs sees: its user, with new tokens too, which are refused as bearer tokens.
    private static let proved: JSONValue = [
        "name": "Ana Alvarez", "again": "Ana Alvarez", "type": "DPoP", "new": true, "stolen": [401, "invalid_token"],
    ]

    @Test("It signs a user in", arguments: programs)
    func program(section: String, host: String, seen: JSONValue) async throws {
        try await Self.run { server, page in
            var told = try await Peer.run("program_flow.py", job(server, page, section, host: host))
            if case .object(var object) = told, let scope = object["scope"]?.string {
                object["scope"] = .string(scope.split(separator: " ").sorted().joined(separator: " "))
                told = .object(object)
            }
            #expect(told == seen)
        }
    }

    @Test("idpyoidc signs a user in, calls and refreshes with proofs, at a server that has been up for a while")
    func idpyoidc() async throws {
        // It answers no nonce, which the server asks for in its first two minutes.
        let clock = OurServer.GoingClock(slowBy: 300)
        try await Self.run(clock: clock) { server, page in
            clock.setRight()
            let seen = try await Peer.run("program_flow.py", job(server, page, "idpyoidc with DPoP", host: "clinic"))
            #expect(seen == Self.proved)
        }
    }

    @Test("PyJWT takes our access token, and no ID token, none for another API and no broken one")
    func pyJWT() async throws {
        try await Self.run { server, page in
            let tokens = try await server.tokens(
                client: "mobile", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"])
            let other = try await server.tokens(client: "desktop", redirectURI: "http://localhost/", scopes: ["openid"])
            var text = Array(tokens.accessToken.reveal())
            text[text.count - 20] = text[text.count - 20] == "A" ? "B" : "A"
            guard case .object(var job) = try job(server, page, "An API that checks tokens with PyJWT") else { return }
            job["tokens"] = [
                "access": .string(tokens.accessToken.reveal()),
                "id": .string(try #require(tokens.idToken).text.reveal()),
                "elsewhere": .string(other.accessToken.reveal()), "broken": .string(String(text)),
            ]
            let seen = try await Peer.run("program_flow.py", .object(job))
            #expect(
                seen == [
                    "scope": "openid accounts", "id": "InvalidTokenError", "elsewhere": "InvalidAudienceError",
                    "broken": "InvalidSignatureError",
                ])
        }
    }

    /// Starts an Apache with a block of the page, with this server's name and what only a test needs.
    static func apache(
        _ module: String, _ block: String, more: String = "", _ server: OurServer, directory: String
    ) async throws -> (Locked<ChildProcess>, Int) {
        let named = block.replacing(Page.issuer, with: server.issuer).replacing("(the secret)", with: secret.reveal())
        let settings = local.reduce(named) { $0.replacing($1, with: "http://127.0.0.1:@PORT@") } + more
        let file = directory + "/settings.conf"
        try settings.write(toFile: file, atomically: true, encoding: .utf8)
        return try await Peer.start("apache_program.sh", [module, file])
    }

    private static let html: HTTPFields = [.accept: "text/html"]

    /// The server's authority in a file that Apache's user can read.
    private static func readableAuthority(_ server: OurServer) throws -> String {
        let readable = NSTemporaryDirectory() + "/assent-authority-\(SystemRandom().uuid()).pem"
        try FileManager.default.copyItem(atPath: try #require(server.endpoints.authorityFile), toPath: readable)
        chmod(readable, 0o644)
        return readable
    }

    /// What mod_auth_openidc needs besides: the authority, and limits that a busy machine does not meet; its own are
    /// five seconds for the server's metadata and a minute for tokens.
    private static func needed(_ authority: String) -> String {
        "OIDCCABundlePath \(authority)\nOIDCHTTPTimeoutShort 3600\nOIDCHTTPTimeoutLong 3600\n"
    }

    /// A person who has a session comes to an Apache that asks for a sign-in.
    private struct Visit {
        let browser: PeerClient
        /// Where the browser was sent.
        let asked: String
        /// The session's cookie.
        let cookie: HTTPFields
        /// What the Apache answers to the code.
        let done: PeerClient.Answer

        init(_ here: String, _ server: OurServer) async throws {
            browser = try PeerClient()
            let begun = try await browser.send(.get, here + "/", html)
            asked = try #require(begun.fields[.location], "\(begun.status) \(begun.text)")
            #expect(asked.contains("code_challenge_method=S256"))
            let session = try await server.signIn()
            cookie = [.cookie: "\(server.endpoints.cookieName)=\(session.token.reveal())"]
            let answer = try await PeerClient(server.transport).send(.get, asked, cookie)
            let back = try #require(answer.fields[.location], "\(answer.status) \(answer.text)")
            done = try await browser.send(.get, back, html)
        }
    }

    @Test("mod_auth_openidc with private_key_jwt signs a user in by the client's key, and by no other")
    func modAuthOpenIDCWithKey() async throws {
        // The module makes assertions by its own clock.
        try await Self.run(clock: SystemClock()) { server, page in
            let block = try #require(page.blocks("apache", of: "Apache with a client key").first)
            let readable = try Self.readableAuthority(server)
            defer { try? FileManager.default.removeItem(atPath: readable) }
            let other = try SoftwareSigningKey.generate(.rs256, rsaBits: 2048)
            for (key, isRight) in [(try Self.clientKey.get(), true), (other, false)] {
                let directory = try Peer.temporaryDirectory()
                defer { try? FileManager.default.removeItem(atPath: directory) }
                let files = [
                    "extranet.pem": ("PRIVATE", key.privateKey),
                    "extranet.pub": ("PUBLIC", Secret(bytes: key.publicKeyInfo)),
                ]
                for (name, (kind, der)) in files {
                    let text = Data(der.revealBytes()).base64EncodedString(options: [
                        .lineLength64Characters, .endLineWithLineFeed,
                    ])
                    let pem = "-----BEGIN \(kind) KEY-----\n\(text)\n-----END \(kind) KEY-----\n"
                    try Data(pem.utf8).write(to: URL(filePath: directory + "/" + name))
                }
                let (process, port) = try await Self.apache(
                    "auth_openidc", block.replacing("/etc/assent", with: directory),
                    more: Self.needed(readable), server, directory: directory)
                defer { process.withLock { $0.stop() } }
                let here = "http://127.0.0.1:\(port)"
                let published = try await PeerClient().send(.get, here + "/oidc?jwks=rsa").json["keys"]?.array?.first
                #expect(published?["kid"] == "2026")
                #expect(published?["n"] == (try JWK(publicKeyInfo: key.publicKeyInfo).json["n"]))
                let visit = try await Visit(here, server)
                #expect((visit.done.status == 302) == isRight, "\(visit.done.status) \(visit.done.text)")
                let seen = try await visit.browser.send(.get, here + "/", Self.html)
                #expect(seen.status == (isRight ? 200 : 302))
                #expect((seen.text == "protected\n") == isRight)
            }
        }
    }

    @Test("mod_auth_openidc signs a user in, knows them by name, and signs them out here and there")
    func modAuthOpenIDC() async throws {
        try await Self.run { server, page in
            let directory = try Peer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let block = try #require(page.blocks("apache", of: "Apache with mod_auth_openidc").first)
            let readable = try Self.readableAuthority(server)
            defer { try? FileManager.default.removeItem(atPath: readable) }
            let (process, port) = try await Self.apache(
                "auth_openidc", block, more: Self.needed(readable), server, directory: directory)
            defer { process.withLock { $0.stop() } }
            let here = "http://127.0.0.1:\(port)"
            let html = Self.html
            let visit = try await Visit(here, server)
            let (browser, asked, cookie) = (visit.browser, visit.asked, visit.cookie)
            #expect(visit.done.status == 302, "\(visit.done.status) \(visit.done.text)")
            let seen = try await browser.send(.get, here + "/", html)
            #expect(seen.status == 200 && seen.text == "protected\n")
            let name = try #require(HTTPField.Name("X-Seen-User"))
            #expect(seen.fields[name] == "ana")

            let out = try await browser.send(
                .get, here + "/oidc?logout=" + PercentEncoding.encode(here + "/"), html)
            let end = try #require(out.fields[.location], "\(out.status) \(out.text)")
            #expect(end.contains("id_token_hint="))
            let ended = try await PeerClient(server.transport).send(.get, end, cookie)
            #expect(ended.fields[.location]?.hasPrefix(here + "/") == true, "\(ended.status) \(ended.text)")
            #expect(try await browser.send(.get, here + "/", html).status == 302)
            let silent = try await PeerClient(server.transport).send(.get, asked, cookie)
            #expect(silent.fields[.location]?.contains("/UI/Login?") == true)
        }
    }

    @Test("mod_oauth2 takes our access token for its API, and no ID token, none for another API and no request without")
    func modOAuth2() async throws {
        try await Self.run { server, page in
            let directory = try Peer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            // The module trusts the system's authorities only, and cannot be told of one that a test has made.
            let block = try #require(page.blocks("apache", of: "An API behind Apache with mod_oauth2").first)
                .replacing("verify.iss=skip", with: "jwks_uri.ssl_verify=false&verify.iss=skip")
            let (process, port) = try await Self.apache("oauth2", block, server, directory: directory)
            defer { process.withLock { $0.stop() } }
            let tokens = try await server.tokens(
                client: "mobile", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"])
            let other = try await server.tokens(client: "desktop", redirectURI: "http://localhost/", scopes: ["openid"])
            let client = try PeerClient()
            func status(_ token: Secret?) async throws -> Int {
                let fields: HTTPFields = token.map { [.authorization: "Bearer \($0.reveal())"] } ?? [:]
                return try await client.send(.get, "http://127.0.0.1:\(port)/api/", fields).status
            }
            #expect(try await status(tokens.accessToken) == 200)
            #expect(try await status(other.accessToken) == 401)
            #expect(try await status(try #require(tokens.idToken).text) == 401)
            #expect(try await status(nil) == 401)
        }
    }
}
