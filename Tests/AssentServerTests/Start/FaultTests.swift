import AssentConfiguration
import AssentCore
import AssentTesting
import Foundation
import InMemoryLogging
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("When the database fails, and when the server ends")
struct FaultTests {
    private static let form = [("Content-Type", "application/x-www-form-urlencoded")]
    private static let body = #"{"amount":"200.00"}"#

    @Test("Without its database every endpoint answers 503, and the gateway forwards nothing")
    func closed() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            let tokens = try await fixture.tokens(session: token)
            let bearer = ServerFixture.bearer(tokens.access)
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            let ready = try await fixture.send("GET", "https://localhost:\(fixture.serverPort)/readyz")
            #expect(ready.status == 200 && ready.json["passwordChecks"] == "free")
            try await fixture.closeDatabase()
            let json = [("Content-Type", "application/json")]
            let calls: [(String, String, [(String, String)], String?)] = [
                ("POST", fixture.json("authenticate?authIndexType=service&authIndexValue=Quick"), [], nil),
                ("POST", fixture.json("authenticate"), session, nil),
                ("POST", fixture.json("sessions?_action=getSessionInfo"), session, nil),
                ("POST", fixture.json("sessions?_action=validate"), session, nil),
                ("POST", fixture.json("sessions?_action=logout"), session, nil),
                (
                    "POST", fixture.json("policies?_action=evaluate"), session + json,
                    #"{"resources":["https://bank.example:443/see"],"application":"rest"}"#
                ),
                ("GET", fixture.oauth("userinfo"), bearer, nil),
                (
                    "POST", fixture.oauth("access_token"), Self.form,
                    ServerFixture.query([
                        ("grant_type", "refresh_token"), ("refresh_token", tokens.refresh), ("client_id", "bank-app"),
                    ])
                ),
                (
                    "POST", fixture.oauth("token/revoke"), Self.form,
                    ServerFixture.query([("token", tokens.refresh), ("client_id", "bank-app")])
                ),
                ("GET", fixture.gateway("/accounts"), session, nil), ("GET", fixture.gateway("/accounts"), bearer, nil),
                ("POST", fixture.gateway("/nods"), session + json, Self.body),
                ("POST", fixture.gateway("/nods?_txid=\(id)"), session + json, Self.body),
                ("GET", "https://localhost:\(fixture.serverPort)/readyz", [], nil),
            ]
            for (method, url, fields, text) in calls {
                let reply = try await fixture.send(method, url, fields, body: text.map { Array($0.utf8) })
                #expect(reply.status == 503, "\(method) \(url): \(reply.text)")
                #expect(reply.json != .null)
                #expect(!reply.text.contains("SQL"))
            }
            let authorized = try await fixture.authorize(session: token)
            #expect(authorized.status == 503 && authorized.error == "temporarily_unavailable")
            #expect(try await fixture.send("GET", "https://localhost:\(fixture.serverPort)/healthz").status == 200)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test(
        "With a full disk nothing is granted or spent; with space again, the same request succeeds",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func full() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let fields = ServerFixture.session(token) + [("Content-Type", "application/json")]
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            try await fixture.fillDisk(true)
            let audit = AuditLog(fixture.server.context)
            for size in [3000, 300, 0] {
                let record = AuditRecord(
                    AuditEvent(rawValue: "f"), .success, detail: ["x": .string(String(repeating: "x", count: size))])
                while (try? await audit.write(record)) != nil {}
            }
            let refused = try await fixture.send(
                "POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
            #expect(refused.status == 503 && refused.json["forwarded"] == "no")
            let advised = try await fixture.send("POST", fixture.gateway("/nods"), fields, text: Self.body)
            #expect(advised.status == 503)
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.count("transactions") == 1)
            // What only reads goes on, so the server stays ready.
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), fields).status == 200)
            #expect(try await fixture.send("GET", "https://localhost:\(fixture.serverPort)/readyz").status == 200)
            try await fixture.fillDisk(false)
            let paid = try await fixture.send("POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
            #expect(paid.status == 201)
            #expect(fixture.upstream.requests.count == 2)
        }
    }

    @Test(
        "With a database that may only be read, all that changes something answers 503 and changes nothing; once it may be written, the same requests succeed",
        .enabled(if: !TestDatabase.isPostgreSQL, "it changes what a SQLite file allows"))
    func readOnly() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            let fields = session + [("Content-Type", "application/json")]
            let tokens = try await fixture.tokens(session: token)
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            let renewal = ServerFixture.query([
                ("grant_type", "refresh_token"), ("refresh_token", tokens.refresh), ("client_id", "bank-app"),
            ])
            let forwarded = fixture.upstream.requests.count
            let before = try await fixture.contents()
            try await fixture.makeReadOnly(true)
            let calls: [(String, String, [(String, String)], String?)] = [
                ("POST", fixture.json("authenticate?authIndexType=service&authIndexValue=Quick"), [], nil),
                ("POST", fixture.json("sessions?_action=logout"), session, nil),
                ("POST", fixture.oauth("access_token"), Self.form, renewal),
                (
                    "POST", fixture.oauth("token/revoke"), Self.form,
                    ServerFixture.query([("token", tokens.refresh), ("client_id", "bank-app")])
                ),
                ("POST", fixture.gateway("/nods"), fields, Self.body),
                ("POST", fixture.gateway("/nods?_txid=\(id)"), fields, Self.body),
            ]
            for (method, url, fields, text) in calls {
                let reply = try await fixture.send(method, url, fields, body: text.map { Array($0.utf8) })
                #expect(reply.status == 503, "\(method) \(url): \(reply.text)")
                #expect(!reply.text.contains("SQL"))
            }
            #expect(fixture.upstream.requests.count == forwarded)
            #expect(try await fixture.contents() == before)
            let info = try await fixture.send("POST", fixture.json("sessions?_action=getSessionInfo"), session)
            #expect(info.status == 200)
            try await fixture.makeReadOnly(false)
            let paid = try await fixture.send("POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
            #expect(paid.status == 201)
            #expect(fixture.upstream.requests.count == forwarded + 1)
            #expect(
                try await fixture.send("POST", fixture.oauth("access_token"), Self.form, text: renewal).status == 200)
            #expect(try await fixture.send("POST", fixture.json("sessions?_action=logout"), session).status == 200)
        }
    }

    @Test(
        "What only reads goes on where the use of a session cannot be noted, until the session ends without a use",
        .enabled(if: !TestDatabase.isPostgreSQL, "it changes what a SQLite file allows"))
    func unnotedUse() async throws {
        // The access token must outlive the session.
        let edit: (String) -> String = { $0.replacing("accessTokenSeconds: 600", with: "accessTokenSeconds: 3600") }
        try await ServerFixture.run(editing: edit) { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            let bearer = ServerFixture.bearer(try await fixture.tokens(session: token).access)
            let accounts = fixture.gateway("/accounts")
            try await fixture.makeReadOnly(true)
            for _ in 0..<2 {
                fixture.clock.advance(by: 600)
                for fields in [session, bearer] {
                    #expect(try await fixture.send("GET", accounts, fields).status == 200)
                }
                #expect(try await fixture.send("GET", fixture.oauth("userinfo"), bearer).status == 200)
                let valid = try await fixture.send("POST", fixture.json("sessions?_action=validate"), session)
                #expect(valid.status == 200 && valid.json["valid"] == true, "\(valid.text)")
            }
            // What asks for nothing but that does not get it.
            let reset = try await fixture.send(
                "POST", fixture.json("sessions?_action=getSessionInfoAndResetIdleTime"), session)
            #expect(reset.status == 503)
            fixture.clock.advance(by: 600)
            for fields in [session, bearer] {
                #expect(try await fixture.send("GET", accounts, fields).status == 401)
            }
            try await fixture.makeReadOnly(false)
        }
    }

    @Test(
        "A start that makes a new database says so, as where the disk of the earlier one is missing; the next does not",
        .enabled(if: !TestDatabase.isPostgreSQL, "it is about a SQLite file"))
    func newDatabase() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for isNew in [true, false] {
            let fixture = try await ServerFixture(kept: directory)
            let isTold = fixture.log.entries.contains { "\($0.message)".contains("a new database was made") }
            #expect(isTold == isNew)
            await fixture.stop()
        }
    }

    @Test(
        "With requireDatabase a start in an empty directory is refused and makes nothing; one with a database goes on",
        .enabled(if: !TestDatabase.isPostgreSQL, "it is about a SQLite file"))
    func requiredDatabase() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let edit: (String) -> String = { $0 + "\nrequireDatabase: true\n" }
        let configuration = try ServerConfiguration.parse(
            edit(FixtureConfiguration.yaml(upstream: 1, refusing: 1)), file: directory + "/assent.yaml")
        let error = await #expect(throws: ConfigurationError.self) {
            try await IdentityServer(configuration: configuration, logger: Logger(label: "test"))
        }
        #expect(error?.message.contains("requireDatabase refuses to make a new one") == true)
        #expect(!FileManager.default.fileExists(atPath: directory + "/data"))
        let edits: [(String) -> String] = [{ $0 }, edit]
        for editing in edits {
            let fixture = try await ServerFixture(kept: directory, editing: editing)
            #expect(try await fixture.count("users") > 0)
            await fixture.stop()
        }
    }

    @Test(
        "A start with a certificate that has expired, or that will be valid later, logs that", arguments: [-400, 400])
    func wrongTime(days: Double) async throws {
        let directory = NSTemporaryDirectory() + "/assent-certificate-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let made = try GeneratedCertificates.make(now: ManualClock().now.addingTimeInterval(days * 86_400))
        let (chain, key) = (directory + "/chain.pem", directory + "/key.pem")
        try Data((made.chainPEM + made.authorityPEM).utf8).write(to: URL(fileURLWithPath: chain))
        try PrivateFile.create(key, made.privateKeyPEM.revealBytes())
        try await ServerFixture.run(configuring: { $0.tls = .files(certificate: chain, privateKey: key) }) { fixture in
            let warnings = fixture.log.entries.filter { $0.level >= .warning }.map { "\($0.message)" }
            let words = days < 0 ? "the certificate has expired" : "the certificate is not valid yet"
            #expect(warnings.contains { $0.contains(words) }, "\(warnings)")
        }
    }

    private static func signIn(_ fixture: ServerFixture) async throws -> Answer {
        let password = try fixture.account("ben").password
        return try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) { type in
            type == "NameCallback" ? "ben" : type == "PasswordCallback" ? .string(password.reveal()) : nil
        }
    }

    @Test("With all places for password checks taken a node says so and stays ready; approvals and payments go on")
    func guesses() async throws {
        try await ServerFixture.run { fixture in
            let ready = "https://localhost:\(fixture.serverPort)/readyz"
            let token = try await fixture.session()
            let workers = fixture.server.passwords.workers
            let (places, hasEnded) = (Watched(0), Watched(false))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<workers.load.limit {
                    let caller = PasswordCaller(address: "192.0.2.\(number)", user: "u\(number)")
                    group.addTask {
                        try await workers.admitting(caller) {
                            places.update { $0 += 1 }
                            await hasEnded.wait { $0 }
                        }
                    }
                }
                await places.wait { $0 == workers.load.limit }
                let full = try await fixture.send("GET", ready)
                #expect(full.status == 200 && full.json["passwordChecks"] == "full", "\(full.text)")
                let refused = try await Self.signIn(fixture)
                #expect(refused.status == 503, "\(refused.text)")
                let id = try await fixture.completedTransaction(body: Self.body, session: token)
                let fields = ServerFixture.session(token) + [("Content-Type", "application/json")]
                let paid = try await fixture.send(
                    "POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
                #expect(paid.status == 201, "\(paid.text)")
                hasEnded.update { $0 = true }
                try await group.waitForAll()
            }
            #expect(try await fixture.send("GET", ready).json["passwordChecks"] == "free")
            #expect(try await Self.signIn(fixture).json["tokenId"]?.string != nil)
        }
    }

    @Test("A server that ends finishes what it has begun, records it, and takes nothing new")
    func shutdown() async throws {
        try await ServerFixture.run(configuring: { $0.drainSeconds = Patience.seconds }) { fixture in
            let token = try await fixture.session()
            let fields = ServerFixture.session(token) + [("Content-Type", "application/json")]
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            fixture.upstream.hold()
            async let reply = fixture.send("POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
            await fixture.upstream.waitUntilHeld()
            await fixture.triggerShutdown()
            await fixture.upstream.release()
            #expect(try await reply.status == 201)
            await fixture.waitUntilEnded()
            for toGateway in [true, false] {
                await #expect(throws: (any Error).self) { try await fixture.rawConnection(toGateway: toGateway) }
            }
            #expect(fixture.upstream.requests.count == 1)
        }
    }
}
