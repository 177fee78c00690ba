import AssentConfiguration
import AssentCore
import AssentOTP
import AssentStore
import AssentTesting
import Foundation
import Logging
import ServiceLifecycle
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Users of the configuration file")
struct UserSeedingTests {
    private static let seed = Secret("seed-of-fay-20-bytes")
    private static let generated = "- {username: ben, credentials: generated}"

    private func write(_ text: String, _ path: String) throws {
        try? FileManager.default.removeItem(atPath: path)
        try PrivateFile.create(path, Array(text.utf8))
    }

    private func hash(_ password: String, logN: Int = 10) throws -> String {
        let salt = SystemRandom().bytes(16)
        let cost = PasswordHash.Cost(logN: logN)
        let hash = try ScryptDerivation().derive(Secret(password), salt: salt, cost: cost, byteCount: 32)
        return PasswordHash(cost: cost, salt: salt, hash: hash).text
    }

    /// A configuration with other users in place of Ben.
    private func yaml(_ users: String...) -> String {
        FixtureConfiguration.yaml(upstream: 1, refusing: 2).replacing(
            Self.generated, with: users.joined(separator: "\n      "))
    }

    private func server(_ directory: String, _ yaml: String, development: Bool = true) async throws -> IdentityServer {
        var configuration = try ServerConfiguration.parse(yaml, file: directory + "/assent.yaml")
        if !development { configuration = configuration.inProduction }
        return try await IdentityServer(
            configuration: configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func count(_ directory: String, _ table: String) async throws -> Int64 {
        let database = try await DatabaseLocation.sqlite(path: directory + "/data/assent.sqlite")
            .open(clock: SystemClock())
        let rows = try await database.run(.read("SELECT count(*) AS n FROM \(SQL(verbatim: table))"))
        try await database.close()
        return try #require(rows.first).integer("n")
    }

    private func signIn(
        _ fixture: ServerFixture, _ name: String, _ password: String, seed: Secret? = nil
    ) async throws -> Bool {
        let journey = seed == nil ? "Quick" : "Login"
        fixture.clock.advance(by: 30)
        let reply = try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", journey)]) { type in
            switch type {
            case "NameCallback": .string(name)
            case "PasswordCallback": .string(password)
            case "TextInputCallback": try seed.map { .string(try TOTP(secret: $0).code(at: fixture.clock.now)) }
            default: nil
            }
        }
        return reply.json["tokenId"]?.string != nil
    }

    @Test("They come with a hash, a password file and a seed file; the second start leaves them as they are")
    func restart() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func users(hal: String, fay: String, seed: Secret, roles: String) throws -> String {
            try write(fay + "\n", directory + "/fay.password")
            try write(Base32.encode(seed.revealBytes()) + "\n", directory + "/fay.seed")
            return [
                "- {username: hal, passwordHash: \"\(try hash(hal))\", roles: [\(roles)]}",
                "- {username: fay, passwordFile: fay.password, totpSeedFile: fay.seed}", Self.generated,
            ].joined(separator: "\n      ")
        }
        var text = try users(hal: "password of hal", fay: "fay's own: ü", seed: Self.seed, roles: "auditor")
        let first = try await ServerFixture(kept: directory, editing: { $0.replacing(Self.generated, with: text) })
        #expect(first.endpoints.accounts.map(\.username).sorted() == ["ana", "ben", "bob", "pat"])
        #expect(try await signIn(first, "hal", "password of hal"))
        #expect(try await !signIn(first, "hal", "another"))
        #expect(try await signIn(first, "fay", "fay's own: ü", seed: Self.seed))
        #expect(try await !signIn(first, "fay", "fay's own: ü", seed: Secret("another-seed-20-byte")))
        let stored = try await first.rows("SELECT * FROM users ORDER BY id")
        let factors = try await first.rows("SELECT user_id, sealed_secret FROM totp_credentials ORDER BY user_id")
        let ben = try first.account("ben")
        await first.stop()

        let other = Secret("new-seed-of-20-bytes")
        text = try users(hal: "changed", fay: "changed", seed: other, roles: "admin")
        let second = try await ServerFixture(kept: directory, editing: { $0.replacing(Self.generated, with: text) })
        #expect(second.endpoints.accounts.isEmpty)
        #expect(try await second.rows("SELECT * FROM users ORDER BY id") == stored)
        #expect(
            try await second.rows("SELECT user_id, sealed_secret FROM totp_credentials ORDER BY user_id") == factors)
        #expect(try await signIn(second, "hal", "password of hal"))
        #expect(try await !signIn(second, "hal", "changed"))
        second.clock.advance(by: 300)
        #expect(try await signIn(second, "fay", "fay's own: ü", seed: Self.seed))
        #expect(try await !signIn(second, "fay", "fay's own: ü", seed: other))
        #expect(try await signIn(second, "ben", ben.password.reveal(), seed: ben.totpSeed))
        await second.stop()
    }

    @Test(
        "A file that is empty, short, no base 32, no text, open to others or missing is named, and no user is made",
        arguments: [
            ("totpSeedFile", "", 0o600), ("totpSeedFile", "\n", 0o600), ("totpSeedFile", "GEZDGNBVGY3TQOJQ", 0o600),
            ("totpSeedFile", "GEZDGNBVGY3TQOJQGEZDGNBVG", 0o600), ("totpSeedFile", "!!!!", 0o600),
            ("totpSeedFile", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", 0o644), ("totpSeedFile", nil, 0o600),
            ("passwordFile", "", 0o600), ("passwordFile", "\r\n\n", 0o600), ("passwordFile", "x", 0o640),
            ("passwordFile", String(repeating: "p", count: 1025), 0o600), ("passwordFile", nil, 0o600),
        ] as [(String, String?, mode_t)])
    func badFiles(key: String, content: String?, mode: mode_t) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = directory + "/secret"
        if let content { try write(content, file) }
        chmod(file, mode)
        let password = key == "passwordFile" ? "" : "passwordHash: \"\(try hash("x"))\", "
        // Those before and after it are not made either: nobody would be shown what was generated for them.
        let text = yaml("- {username: fay, \(password)\(key): secret}", Self.generated)
        let error = await #expect(throws: ConfigurationError.self) { try await server(directory, text) }
        #expect(error?.file == file, "\(error?.description ?? "")")
        #expect(try await count(directory, "users") == 0)

        // Put right, all are made, and whoever has a seed file has the second factor.
        try write("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", file)
        let fixed = try await ServerFixture(
            kept: directory,
            editing: {
                $0.replacing(
                    Self.generated,
                    with: "- {username: fay, \(password)\(key): secret}\n      " + Self.generated)
            })
        #expect(fixed.endpoints.accounts.map(\.username).sorted() == ["ana", "ben", "bob", "pat"])
        #expect(try await fixed.count("totp_credentials") == (key == "totpSeedFile" ? 5 : 4))
        await fixed.stop()
    }

    @Test("When the second factor cannot be stored, no user is: neither that one nor any other")
    func atomic() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try await server(directory, yaml(Self.generated))
        let seeding = UserSeeding(
            context: server.context, passwords: Passwords(server.context, policy: PasswordPolicy(logN: 4)),
            isDevelopment: true)
        let realms = try ServerConfiguration.parse(yaml(Self.generated), file: "assent.yaml").realms
        let plan = try await seeding.plan(realms)
        _ = try await server.context.database.run(
            SQLStatement("CREATE TRIGGER t BEFORE INSERT ON totp_credentials BEGIN SELECT RAISE(ABORT, 'full'); END"))
        await #expect(throws: StoreError.self) { try await seeding.carryOut(plan) }
        #expect(try await count(directory, "users") == 0)
        _ = try await server.context.database.run(SQLStatement("DROP TRIGGER t"))
        #expect(try await seeding.carryOut(plan)?.count == 4)
        #expect(try await count(directory, "users") == 4)
        #expect(try await count(directory, "totp_credentials") == 4)
        // A plan that another server was faster with makes nothing; the next one has nothing to make.
        #expect(try await seeding.carryOut(plan) == nil)
        #expect(try await seeding.carryOut(seeding.plan(realms))?.isEmpty == true)
        #expect(try await count(directory, "users") == 4)
        try await server.database.close()
    }

    @Test("Outside of development a hash of another cost than the server's is refused; in development it is taken")
    func otherCost() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let text = yaml("- {username: hal, passwordHash: \"\(try hash("x", logN: 11))\"}")
        let error = await #expect(throws: ConfigurationError.self) {
            try await server(directory, text, development: false)
        }
        #expect(error?.description.contains("hal: costs ln=11,r=8,p=1, but passwordCost says ln=10") == true)
        #expect(try await count(directory, "users") == 0)
        let broken = yaml("- {username: hal, passwordHash: \"$scrypt$ln=10,r=8,p=1$AAAA$AAAA\"}")
        await #expect(throws: ConfigurationError.self) { try await server(directory, broken) }
        try await server(directory, text).database.close()
        let same = yaml("- {username: hal, passwordHash: \"\(try hash("x"))\"}")
        try await server(directory, same, development: false).database.close()
    }
}

extension ServerConfiguration {
    /// The same, as a file without `development: true` would give it: such a file cannot have a cheap `passwordCost`.
    fileprivate var inProduction: ServerConfiguration {
        ServerConfiguration(
            isDevelopment: false, file: file, publicURL: publicURL, host: host, port: port,
            dataDirectory: dataDirectory, masterKeyFile: masterKeyFile, tls: tls, cookieName: cookieName,
            passwordCost: passwordCost, transactionLimits: transactionLimits,
            journeyStartsPerMinute: journeyStartsPerMinute, drainSeconds: drainSeconds, realms: realms,
            gateway: gateway)
    }
}
