import AssentConfiguration
import AssentCore
import AssentStore
import Foundation
import Glibc
import Logging
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What assent doctor finds about a server")
struct ServerExaminationTests {
    /// A directory with a configuration file, which is gone after the test.
    private final class Place {
        let path = NSTemporaryDirectory() + "/assent-doctor-" + SystemRandom().uuid()
        var file: String { path + "/assent.yaml" }

        init(_ change: (String) -> String = { $0 }) throws {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try Data(change(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)).utf8)
                .write(to: URL(fileURLWithPath: file))
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func problems() async -> [String] {
            await ServerExamination.findings(file: file).filter { $0.verdict == .problem }.map(\.text)
        }
    }

    private static func ownCertificate(host: String) -> (String) -> String {
        {
            $0.replacing("development: true\n", with: "tls: {certificate: chain.pem, privateKey: key.pem}\n")
                .replacing("passwordCost: 1024\n", with: "").replacing(", credentials: generated", with: "")
                .replacing("https://localhost:0/am", with: "https://\(host)/am")
        }
    }

    @Test("Nothing, where a first start has nothing against it")
    func good() async throws {
        let place = try Place()
        #expect(await place.problems().isEmpty)
        #expect(await ServerExamination.findings(file: place.file).count >= 4)
    }

    @Test("Policies and templates that leave out all that they do not show are named")
    func unseen() async throws {
        func notes(_ places: String) async throws -> [String] {
            let place = try Place {
                $0.replacing(#"notShown: [/reference, "?a"]"#, with: "notShown: \(places)")
                    .replacing("notShown: [/0/type]", with: "notShown: [/]")
            }
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict == .note && $0.text.contains("unseen") }.map(\.text)
        }
        for places in ["[/]", #"["?"]"#, "[/reference, /]"] {
            let found = try await notes(places)
            #expect(found.contains { $0.contains("the policy pay of /alpha, bank") }, "\(found)")
            #expect(found.contains { $0.contains("the signing template payment of /alpha") }, "\(found)")
        }
        #expect(try await !notes("[/reference]").contains { $0.contains("the policy") })
    }

    @Test("The issuers, and clients that go without PKCE or refresh too seldom for their sessions")
    func clients() async throws {
        let place = try Place {
            $0.replacing("      back-office:", with: "      back-office:\n        requirePKCE: false")
                .replacing("https://localhost:0/am", with: "https://localhost:8443/am")
        }
        let found = await ServerExamination.findings(file: place.file)
        let issuer = "the issuer of realm /alpha is https://localhost:8443/am/oauth2/realms/root/realms/alpha"
        #expect(found.contains { $0.text == issuer && $0.verdict == .fine })
        let notes = found.filter { $0.verdict == .note }.map(\.text)
        #expect(notes.contains { $0.hasPrefix("the client back-office of /alpha goes without PKCE") })
        #expect(notes.contains { $0.hasPrefix("the client back-office of /alpha refreshes after 60 minutes") })
        #expect(notes.contains { $0.hasPrefix("the client bank-app of /beta refreshes after 60 minutes") })
        #expect(!notes.contains { $0.contains("bank-app of /alpha") })
    }

    @Test("A route whose scopes no client has lets in no access token, and that is noted")
    func closedRoutes() async throws {
        func notes(_ scopes: String) async throws -> [String] {
            let place = try Place {
                $0.replacing(/( *)senderConstrained: true\n/) {
                    "\($0.output.1)senderConstrained: true\n\($0.output.1)scopes: [\(scopes)]\n"
                }
            }
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict == .note && $0.text.contains("lets in no access token") }.map(\.text)
        }
        let found = try await notes("accounts, nobodys")
        #expect(
            found.count == 1 && found.first?.hasPrefix("the route keyed lets in no access token") == true, "\(found)")
        #expect(found.first?.contains("[accounts, nobodys]") == true)
        #expect(try await notes("accounts").isEmpty)
    }

    @Test("Gateways elsewhere: sets and origins that no policy brings together, addresses that they are not believed")
    func enforcement() async throws {
        let origin = #""https://localhost:9543""#
        func notes(_ sets: String, _ origins: String) async throws -> [String] {
            let place = try Place {
                $0.replacing(
                    "policySets: [bank, rest], origins: [\(origin)]}",
                    with: "policySets: [\(sets)], origins: [\(origins)]}")
            }
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict == .note && $0.text.contains("gateways branch") }.map(\.text)
        }
        let (set, address) = ("no policy of rest is about an origin", "looks at the client's address")
        let usual = try await notes("bank, rest", origin)
        #expect(usual.contains { $0.hasPrefix(set) }, "\(usual)")
        #expect(usual.count { $0.contains(address) } == 2, "\(usual)")
        #expect(try await notes("rest", #""https://bank.example""#).isEmpty)
        let further = try await notes("rest", #""https://bank.example", "https://bank.example:8443""#)
        #expect(further.count == 1 && further.first?.contains("https://bank.example:8443") == true, "\(further)")
    }

    @Test("Policies of the gateway's sets that are about another address, where no other gateway asks them, are noted")
    func unasked() async throws {
        func notes(_ gateway: String, elsewhere: String) async throws -> [String] {
            let place = try Place {
                $0.replacing("publicURL: https://localhost:0\n", with: "publicURL: \(gateway)\n")
                    .replacing("https://localhost:9543", with: elsewhere)
            }
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict == .note && $0.text.contains("where the gateway is") }.map(\.text)
        }
        let moved = try await notes("https://pay.bank.example", elsewhere: "https://edge.bank.example")
        let pay = "the policy pay of /alpha, bank, is not about https://pay.bank.example"
        #expect(moved.contains { $0.hasPrefix(pay) }, "\(moved)")
        #expect(!moved.contains { $0.contains("/alpha, rest,") }, "\(moved)")
        let asked = try await notes("https://pay.bank.example", elsewhere: "https://localhost:9543")
        #expect(!asked.contains { $0.contains("/alpha, bank,") }, "\(asked)")
        let right = try await notes("https://localhost:8444", elsewhere: "https://edge.bank.example")
        #expect(!right.contains { $0.contains("/alpha, bank,") }, "\(right)")
    }

    @Test("What no kind of caller can reach, and secret scopes of an app that anybody can register as, are noted")
    func kinds() async throws {
        func notes(_ change: @escaping (String) -> String) async throws -> [String] {
            let place = try Place(change)
            return await ServerExamination.findings(file: place.file).filter { $0.verdict == .note }.map(\.text)
        }
        func hasNote(_ start: String, _ change: @escaping (String) -> String) async throws -> Bool {
            try await notes(change).contains { $0.hasPrefix(start) }
        }
        let file: (String) -> String = { ResourceInstanceTests.file($0) }
        let (other, own) = ("the policy other of /alpha, installations, holds for", "the policy own of /alpha")
        // No app is called other.
        #expect(try await hasNote(other, file))
        #expect(try await !hasNote(own, file))
        let here: (String) -> String = { file($0).replacing("apps: [other]", with: "apps: [pay]") }
        #expect(try await !hasNote(other, here))
        // An installation has no session, so it has no level.
        let condition = "apps: [pay]}\n            condition: {type: AuthLevel, authLevel: 1}"
        #expect(
            try await hasNote(other) {
                here($0).replacing("subject: {type: App, apps: [pay]}", with: "subject: {type: App, " + condition)
            })

        #expect(try await !hasNote("the route app-info accepts", file))
        #expect(
            try await hasNote("the route app-info accepts implicit") {
                file($0).replacing("accepts: [device]", with: "accepts: [device, implicit]")
            })
        // Nobody of the app is let in so, until it says so.
        let stateless: (String) -> String = {
            file($0).replacing("accepts: [device]", with: "accepts: [device, stateless]")
        }
        #expect(try await hasNote("the route app-info accepts stateless", stateless))
        #expect(
            try await !hasNote("the route app-info accepts stateless") {
                let line = "        registrationsPerAddress: 1000\n"
                return stateless($0).replacing(line, with: line + "        stateless: true\n", maxReplacements: 1)
            })
        let grants = "grantTypes: [authorization_code, refresh_token, client_credentials]"
        #expect(
            try await hasNote("the route app-info accepts device") {
                file($0).replacing(grants, with: "grantTypes: [authorization_code]")
            })

        // Remembered users.
        let remembering: (String) -> String = {
            ResourceInstanceTests.file($0, app: "\n        implicit: {scopes: [accounts]}")
                .replacing(
                    "grantTypes: [authorization_code, refresh_token, client_credentials",
                    with: "grantTypes: [authorization_code, refresh_token, client_credentials, "
                        + "\"urn:ietf:params:oauth:grant-type:jwt-bearer\"")
        }
        let useless = "the app pay of /alpha has the implicit scopes [accounts], and no route"
        #expect(try await hasNote(useless, remembering))
        let greeting: (String) -> String = {
            remembering($0)
                .replacing("accepts: [device]", with: "accepts: [device, implicit]\n      scopes: [accounts]")
        }
        #expect(try await !hasNote("the route app-info accepts", greeting))
        #expect(try await !hasNote("the app pay of /alpha has the implicit scopes", greeting))

        for (registration, isNoted) in [("open", true), ("token", false)] {
            let found = try await hasNote("anybody can register as the app pay of /alpha") {
                RegistrationDoor.file($0, registration: registration)
                    .replacing("[openid, accounts, offline_access]", with: "[openid, ledger]", maxReplacements: 1)
                    .replacing("defaultScopes: [accounts]", with: "defaultScopes: [ledger]", maxReplacements: 1)
                    .replacing("[signing, accounts]", with: "[signing, accounts, ledger]")
            }
            #expect(found == isNoted)
        }
        #expect(
            try await !hasNote("anybody can register") { RegistrationDoor.file($0, registration: "open") })
    }

    @Test("Whose keys a client has, and one that may sign with RS256")
    func keys() async throws {
        let key = try ProofKey()
        let place = try Place {
            ClientAssertionRouteTests.file(key, $0, extra: "\n        assertionAlgorithms: [ES256, RS256]")
        }
        let found = await ServerExamination.findings(file: place.file)
        #expect(found.contains { $0.verdict == .fine && $0.text.hasSuffix("(private_key_jwt): \(key.thumbprint)") })
        #expect(found.contains { $0.verdict == .note && $0.text.contains("may sign assertions with RS256") })
        #expect(found.contains { $0.verdict == .note && $0.text.contains("has a key without kid in jwks") })
    }

    @Test("The authorities of what the server fetches, where they cannot be read")
    func authorities() async throws {
        let address = "jwksURI: \"https://app.example/jwks\""
        for (client, isProblem) in [(address, true), ("idTokenAlgorithm: ES256", false)] {
            let place = try Place {
                "outbound: {authorities: missing.pem}\n"
                    + $0.replacing("idTokenAlgorithm: ES256", with: client, maxReplacements: 1)
            }
            #expect(await place.problems().contains { $0.contains("outbound.authorities") } == isProblem)
            let found = await ServerExamination.findings(file: place.file)
            #expect(found.contains { $0.text.contains("https://app.example/jwks") } == isProblem)
        }
    }

    @Test("A prefix of trusted proxies that is every address is named")
    func proxies() async throws {
        func notes(_ proxies: String) async throws -> [String] {
            let place = try Place {
                $0.replacing("passwordCost: 1024", with: "passwordCost: 1024\ntrustedProxies: [\(proxies)]")
            }
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict == .note && $0.text.contains("trustedProxies") }.map(\.text)
        }
        #expect(try await notes(#""::/0", 0.0.0.0/0"#).count == 2)
        #expect(try await notes(#"10.0.0.0/8, "::1""#).isEmpty)
    }

    @Test("A mistake in the file, with its line, and a file that is not there")
    func mistakes() async throws {
        let place = try Place { $0.replacing("passwordCost: 1024", with: "pasword: 1024") }
        #expect(await place.problems().count == 1)
        #expect(await place.problems().first?.contains("pasword: unknown key") == true)
        try FileManager.default.removeItem(atPath: place.file)
        #expect(await place.problems().first?.contains(place.file) == true)
    }

    @Test("A certificate whose key is another one's, and one that does not name the server's host")
    func certificates() async throws {
        let place = try Place(Self.ownCertificate(host: "localhost"))
        let (made, other) = (try GeneratedCertificates.make(now: Date()), try GeneratedCertificates.make(now: Date()))
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: place.path + "/chain.pem"))
        try PrivateFile.create(place.path + "/key.pem", other.privateKeyPEM.revealBytes())
        #expect(await place.problems().first?.contains("is not the key of the certificate in") == true)
        try FileManager.default.removeItem(atPath: place.path + "/key.pem")
        try PrivateFile.create(place.path + "/key.pem", made.privateKeyPEM.revealBytes())
        // It is valid for a few days, and nobody renews it.
        #expect(await place.problems().allSatisfy { $0.contains("renew it now") })
        func isAlone() async -> Bool {
            await ServerExamination.findings(file: place.file)
                .contains { $0.verdict == .note && $0.text.contains("the certificate of the issuer is not in") }
        }
        #expect(await isAlone())
        try Data((made.chainPEM + "\n" + made.authorityPEM).utf8).write(
            to: URL(fileURLWithPath: place.path + "/chain.pem"))
        #expect(await !isAlone())
        let elsewhere = try Place(Self.ownCertificate(host: "am.bank.example"))
        for name in ["chain.pem", "key.pem"] {
            try FileManager.default.copyItem(atPath: place.path + "/" + name, toPath: elsewhere.path + "/" + name)
        }
        #expect(await elsewhere.problems().first?.contains("does not name am.bank.example") == true)
    }

    @Test("A certificate that has expired, as a start logs it")
    func expired() throws {
        let made = try GeneratedCertificates.make(now: Date())
        let path = NSTemporaryDirectory() + "/assent-expired-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: path + "/chain.pem"))
        try PrivateFile.create(path + "/key.pem", made.privateKeyPEM.revealBytes())
        let credentials = try ServerCredentials.files(
            certificate: path + "/chain.pem", privateKey: path + "/key.pem", in: path + "/assent.yaml")
        let later = Date(timeIntervalSinceNow: 400 * 86_400)
        #expect(try credentials.fault(isRenewed: false, now: later)?.contains("has expired") == true)
        let early = Date(timeIntervalSinceNow: -40 * 86_400)
        #expect(try credentials.fault(isRenewed: false, now: early)?.contains("not valid yet") == true)
        #expect(try credentials.fault(isRenewed: true, now: Date()) == nil)
    }

    @Test(
        "The files of users who are to be made: missing, without what they should have, open to others",
        arguments: [
            ("passwordFile", "correct horse", ""), ("totpSeedFile", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "GEZDGNBV"),
        ])
    func userFiles(key: String, good: String, bad: String) async throws {
        let place = try Place {
            $0.replacing("{username: ben, credentials: generated", with: "{username: ben, \(key): ben.secret")
        }
        let start = try String(contentsOfFile: place.file, encoding: .utf8)
        try #require(start.contains("\(key): ben.secret"), "\(start)")
        let file = place.path + "/ben.secret"
        func isProblem() async -> Bool {
            let found = await place.problems()
            return found.count == 1 && found.first?.contains("ben.secret") == true
        }
        #expect(await isProblem())
        try PrivateFile.create(file, Array(bad.utf8))
        #expect(await isProblem())
        try FileManager.default.removeItem(atPath: file)
        try PrivateFile.create(file, Array(good.utf8))
        #expect(await place.problems().isEmpty)
        chmod(file, 0o644)
        #expect(await isProblem())
    }

    @Test("A user who is to be made without a TOTP seed is noted where a journey always asks for a code")
    func withoutCodes() async throws {
        func notes(_ keys: String) async throws -> [String] {
            let place = try Place {
                $0.replacing("{username: ben, credentials: generated", with: "{username: ben, \(keys)")
            }
            try PrivateFile.create(place.path + "/ben.password", Array("correct horse".utf8))
            try PrivateFile.create(place.path + "/ben.seed", Array("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ".utf8))
            return await ServerExamination.findings(file: place.file)
                .filter { $0.verdict != .fine && $0.text.contains("ben") }.map(\.text)
        }
        let found = try await notes("passwordFile: ben.password")
        #expect(found.count == 1 && found.first?.hasPrefix("the user ben of /alpha has no totpSeedFile") == true)
        // Nod and Quick do without a code.
        #expect(found.first?.contains("(Confirm, Login)") == true && found.first?.contains("users totp ben") == true)
        #expect(try await notes("passwordFile: ben.password, totpSeedFile: ben.seed").isEmpty)
        #expect(try await notes("credentials: generated").isEmpty)
    }

    @Test("A data directory that is a file, one that others may write, and one that cannot be made")
    func directories() async throws {
        let place = try Place()
        let configuration = try ServerConfiguration.load(file: place.file)
        let directory = configuration.dataDirectory
        if directory != place.path {
            try? FileManager.default.removeItem(atPath: directory)
            try Data().write(to: URL(fileURLWithPath: directory))
            #expect(await place.problems().first?.contains("names a file") == true)
            try FileManager.default.removeItem(atPath: directory)
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o777])
            chmod(directory, 0o777)
            #expect(await place.problems().first?.contains("chmod 700") == true)
        } else {
            chmod(directory, 0o777)
            #expect(await place.problems().first?.contains("chmod 700") == true)
        }
    }

    @Test(
        "What a start refuses is found: a key of another length, a database that is gone, a directory and an address that cannot be"
    )
    func refusedStarts() async throws {
        func check(_ text: String, _ place: Place) async throws {
            let found = await place.problems()
            #expect(found.count == 1 && found.first?.contains(text) == true, "\(text): \(found)")
            let configuration = try ServerConfiguration.load(file: place.file)
            let error = await #expect(throws: ConfigurationError.self) {
                try await IdentityServer(configuration: configuration, logger: Logger(label: "test"))
            }
            #expect(error.map { "\($0.explanation)" }?.contains(text) == true, "\(text): \(String(describing: error))")
        }
        let key = try Place()
        let directory = try DataDirectory(try ServerConfiguration.load(file: key.file).dataDirectory)
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        directory.endFirstStart()
        try await check("is empty", key)
        try FileManager.default.removeItem(atPath: directory.database)
        try await check("is missing", key)
        try FileManager.default.removeItem(atPath: directory.file("master.key"))
        try PrivateFile.create(directory.file("master.key"), Array("c2hvcnQ=".utf8))
        try PrivateFile.create(directory.database, [1])
        let short = await key.problems()
        #expect(short.contains { $0.contains("the base 64 of 32 bytes") }, "\(short)")
        for (path, text) in [
            ("/proc/assent", "belongs to the system"), ("/etc/hostname/assent", "is a file"),
            (String(repeating: "a", count: 300), "more than 255 bytes"),
        ] {
            try await check(text, try Place { $0.replacing("dataDirectory: data", with: "dataDirectory: \(path)") })
        }
        let elsewhere = try Place(Self.ownCertificate(host: "localhost"))
        let made = try GeneratedCertificates.make(now: Date())
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: elsewhere.path + "/chain.pem"))
        try PrivateFile.create(elsewhere.path + "/key.pem", made.privateKeyPEM.revealBytes())
        let text = try String(contentsOfFile: elsewhere.file, encoding: .utf8)
        try Data(text.replacing("host: 127.0.0.1", with: "host: 192.0.2.1").utf8)
            .write(to: URL(fileURLWithPath: elsewhere.file))
        let found = await elsewhere.problems()
        #expect(found.contains { $0.contains("192.0.2.1 is not an address of this machine") }, "\(found)")
    }

    @Test("A port that another program has, unless a server runs on the data directory; the gateway on the same port")
    func ports() async throws {
        let taken = try ReservedPort(listens: true)
        let place = try Place { $0.replacing("port: 0", with: "port: \(taken.port)") }
        let found = await place.problems()
        // Server and gateway are told apart by the loader.
        #expect(found.count == 1 && found.first?.contains("the server's own port") == true, "\(found)")
        let one = try Place {
            var text = $0
            if let first = text.range(of: "port: 0") { text.replaceSubrange(first, with: "port: \(taken.port)") }
            return text
        }
        let problems = await one.problems()
        #expect(problems.count == 1 && problems.first?.contains("\(taken.port) is taken") == true, "\(problems)")
        let directory = try DataDirectory(try ServerConfiguration.load(file: one.file).dataDirectory)
        let lock = try DataDirectoryLock(directory)
        #expect(await one.problems().isEmpty)
        lock.release()
        #expect(await one.problems().count == 1)
    }

    @Test("A database that is damaged, and one whose key is gone or open to others")
    func database() async throws {
        let place = try Place()
        let configuration = try ServerConfiguration.load(file: place.file)
        let directory = try DataDirectory(configuration.dataDirectory)
        try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: directory.database))
        let found = await place.problems()
        #expect(found.contains { $0.contains("master key") } && found.contains { $0.contains("the database") })
        try FileManager.default.removeItem(atPath: directory.database)
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        #expect(await place.problems().isEmpty)
        chmod(directory.file("master.key"), 0o644)
        #expect(await place.problems().first?.contains("chmod 600") == true)
    }

    /// A place with the key and a database that has some steps of a schema, and the database's path.
    private func place(with schema: Schema) async throws -> (Place, DataDirectory) {
        let place = try Place()
        let directory = try DataDirectory(try ServerConfiguration.load(file: place.file).dataDirectory)
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        try await directory.databaseLocation.open(schema: schema, clock: SystemClock()).close()
        return (place, directory)
    }

    @Test("A version whose calls must be sealed is a problem as long as there is no valid key for it")
    func sealing() async throws {
        let versions = "\n        versions: {default: {status: enabled, payloadEncryption: required}}"
        let place = try Place { RegistrationDoor.file($0, versions) }
        let directory = try DataDirectory(try ServerConfiguration.load(file: place.file).dataDirectory)
        _ = try directory.masterKey(keyFile: nil, random: SystemRandom())
        let database = try await directory.databaseLocation.open(clock: SystemClock())
        func keep(_ kid: String, notBefore: Int64, notAfter: Int64, isWithdrawn: Bool = false) async throws {
            _ = try await database.run(
                SQLStatement(
                    """
                    INSERT INTO payload_keys (kid, public_key, not_before, not_after, created_at, withdrawn_at)
                    VALUES (\(kid), 'x', \(notBefore), \(notAfter), 1, \(isWithdrawn ? Int64(1) : nil))
                    """))
        }
        func problems() async -> [String] {
            await place.problems().filter { $0.contains("payloadEncryption is required") }
        }
        let far: Int64 = 4_102_444_800
        #expect(await problems().first?.contains("default of the app pay of /alpha") == true)
        try await keep("ended", notBefore: 1, notAfter: 2)
        try await keep("later", notBefore: far - 1, notAfter: far)
        try await keep("withdrawn", notBefore: 1, notAfter: far, isWithdrawn: true)
        #expect(await problems().count == 1)
        try await keep("good", notBefore: 1, notAfter: far)
        #expect(await place.problems().isEmpty)
        try await database.close()
    }

    @Test("A look at an older database changes no byte of it, and says what a start would change")
    func olderSchema() async throws {
        let steps = Schema.current.steps
        let (place, directory) = try await place(with: Schema(Array(steps.dropLast(2))))
        let before = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        let findings = await ServerExamination.findings(file: place.file)
        let text = "a start will bring the schema from step \(steps.count - 2) to \(steps.count)"
        #expect(findings.contains { $0.verdict == .note && $0.text.hasPrefix(text) })
        #expect(await place.problems().isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.database)) == before)
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(files.filter { $0.hasPrefix("assent.sqlite") } == ["assent.sqlite"])
    }

    @Test("A database that a newer version has used is a problem, as is one of another program")
    func otherSchemas() async throws {
        let more = Migration("more", ["CREATE TABLE more (id TEXT)"])
        let (newer, _) = try await place(with: Schema(Schema.current.steps + [more]))
        #expect(await newer.problems().contains { $0.contains("use a newer assent") })
        let (other, _) = try await place(
            with: Schema([Migration("other", ["DROP TABLE schema_steps", more.statements[0]])]))
        #expect(await other.problems().contains { $0.contains("another program") })
    }

    @Test("A server that has the database open goes on while doctor looks at it")
    func whileOpen() async throws {
        let (place, directory) = try await place(with: .current)
        let database = try await directory.databaseLocation.open(clock: SystemClock())
        func write(_ counter: String) async throws {
            _ = try await database.run(
                SQLStatement("INSERT INTO attempts (counter, window_start, count) VALUES (\(counter), 1, 1)"))
        }
        try await write("a")
        let findings = await ServerExamination.findings(file: place.file)
        #expect(findings.contains { $0.verdict == .fine && $0.text == "the database is whole" })
        #expect(findings.allSatisfy { $0.verdict != .problem })
        try await write("b")
        try await database.close()
    }

    /// A server that was started once in a place, as far as its database knows.
    private func started(_ place: Place, _ directory: DataDirectory) async throws -> EngineContext {
        let database = try await directory.databaseLocation.open(clock: SystemClock())
        let context = EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: try directory.masterKey(keyFile: nil, random: SystemRandom()), node: "a",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(try await MasterKeyCheck(context).isRight())
        return context
    }

    @Test("A master key that is not the database's is a problem, before a server is started with it")
    func otherKey() async throws {
        let (place, directory) = try await place(with: .current)
        try await started(place, directory).database.close()
        #expect(await place.problems().isEmpty)
        try FileManager.default.removeItem(atPath: directory.file("master.key"))
        let other = Data(SystemRandom().bytes(32)).base64EncodedString()
        try PrivateFile.create(directory.file("master.key"), Array(other.utf8))
        let problems = await place.problems()
        #expect(problems.count == 1)
        #expect(problems.first?.contains("is not the master key of the database") == true)
    }

    @Test("A server that runs with other policies than the file has is told of")
    func otherPolicies() async throws {
        let (place, directory) = try await place(with: .current)
        let context = try await started(place, directory)
        let configuration = try ServerConfiguration.load(file: place.file)
        let policies = Nodes.digest(of: configuration.realms.flatMap(\.policySets))
        _ = try await Nodes(context).report(policies: policies)
        func told() async -> [Diagnosis] {
            await ServerExamination.findings(file: place.file).filter { $0.text.hasPrefix("node a") }
        }
        #expect(await told().map(\.verdict) == [.fine])
        _ = try await Nodes(context).report(policies: "others")
        let found = await told()
        #expect(found.map(\.verdict) == [.note])
        #expect(found.first?.text.contains("start it again with this file") == true)
        try await context.database.close()
    }
}
