import AssentConfiguration
public import AssentCore
import AssentEngine
import AssentOTP
import AssentStore
import Foundation

/// An account that was made with random credentials, for development.
public struct GeneratedAccount: Sendable {
    /// The realm.
    public let realm: String

    /// The name to sign in with.
    public let username: String

    /// The password.
    public let password: Secret

    /// The seed of the one-time passwords.
    public let totpSeed: Secret
}

/// Makes the users that the configuration names and the store does not have. Those that it has stay as they are.
struct UserSeeding: Sendable {
    let context: EngineContext
    let passwords: Passwords
    var rules = PasswordRequirements()
    let isDevelopment: Bool

    /// RFC 4226 §4, R6: a shared secret has at least 128 bits.
    private static let seedBytes = 16

    /// Users that wait to be stored: everything they need was read and found good.
    struct Plan: Sendable {
        fileprivate(set) var statements: [SQLStatement] = []
        fileprivate(set) var generated: [GeneratedAccount] = []
    }

    /// Reads and checks what the missing users need, and stores nothing yet.
    func plan(_ realms: [RealmConfiguration]) async throws -> Plan {
        var plan = Plan()
        for realm in realms {
            for user in realm.users {
                guard try await Users(context).find(username: user.username, realm: realm.name) == nil else { continue }
                if let other = try await Users(context).findIgnoringCase(username: user.username, realm: realm.name) {
                    // Another node has stored them since.
                    if other.username == user.username { continue }
                    throw ConfigurationError(
                        file: "users of \(realm.name)", line: nil,
                        "the realm has the user \(other.username) already, whose name differs from "
                            + "\(user.username) only in upper and lower case: choose another name")
                }
                try await add(user, realm: realm.name, to: &plan)
            }
        }
        return plan
    }

    /// Stores the users of a plan, all or none, each with the second factor. Returns the accounts with generated
    /// credentials, or `nil` when another server has made one of the users since the plan was made.
    func carryOut(_ plan: Plan) async throws -> [GeneratedAccount]? {
        guard !plan.statements.isEmpty else { return [] }
        do {
            _ = try await context.database.run(plan.statements)
        } catch let error as StoreError where error.code == .unexpectedCount {
            return nil
        }
        return plan.generated
    }

    /// Reads and checks the files of a user, without making anything.
    ///
    /// - Throws: ``ConfigurationError``, which a start would be refused with.
    static func check(
        _ seed: UserSeed, cost: PasswordHash.Cost, rules: PasswordRequirements, isDevelopment: Bool
    ) throws {
        switch seed.password {
        case .file(let path): _ = try password(file: path, of: seed.username, rules: rules)
        case .hash(let text):
            _ = try checked(hash: text, username: seed.username, cost: cost, isDevelopment: isDevelopment)
        case .none, .generated: break
        }
        if let path = seed.totpSeedFile { _ = try totpSeed(file: path) }
    }

    private func add(_ seed: UserSeed, realm: String, to plan: inout Plan) async throws {
        let isGenerated = seed.password == .generated
        let password: Secret? =
            switch seed.password {
            case .generated: Secret(context.random.token(byteCount: 12))
            case .file(let path): try Self.password(file: path, of: seed.username, rules: rules)
            case .none, .hash: nil
            }
        let hash: String? =
            if case .hash(let text) = seed.password {
                try Self.checked(
                    hash: text, username: seed.username, cost: passwords.cost, isDevelopment: isDevelopment)
            } else if let password {
                try await passwords.hash(password)
            } else {
                nil
            }
        var totpSeed = isGenerated ? Secret(bytes: context.random.bytes(20)) : nil
        if let path = seed.totpSeedFile { totpSeed = try Self.totpSeed(file: path) }
        plan.statements += try Users(context).creating(
            username: seed.username, realm: realm, passwordHash: hash, roles: seed.roles, attributes: seed.attributes,
            secondFactor: totpSeed.map { try TOTP(secret: $0) })
        guard isGenerated, let password, let totpSeed else { return }
        plan.generated.append(
            GeneratedAccount(realm: realm, username: seed.username, password: password, totpSeed: totpSeed))
    }

    private static func password(
        file path: String, of username: String, rules: PasswordRequirements
    ) throws -> Secret {
        let password = try PrivateFile.text(path).trimmingCharacters(in: .newlines)
        guard (1...Passwords.byteLimit).contains(password.utf8.count) else {
            throw ConfigurationError(file: path, line: nil, "a password has from 1 to \(Passwords.byteLimit) bytes")
        }
        let secret = Secret(password)
        if let fault = rules.fault(in: secret, of: username) {
            throw ConfigurationError(file: path, line: nil, "cannot be used for \(username). \(fault)")
        }
        return secret
    }

    /// A hash that can be read and, outside of development, costs what this server's own cost: until its first sign-in,
    /// each check of whatever name would have to pay for both costs.
    private static func checked(
        hash text: String, username: String, cost: PasswordHash.Cost, isDevelopment: Bool
    ) throws -> String {
        let place = "passwordHash of \(username)"
        guard let hash = PasswordHash(text) else {
            throw ConfigurationError(
                file: place, line: nil, "is not a hash that this version reads; it begins with $scrypt$")
        }
        guard isDevelopment || hash.cost == cost else {
            throw ConfigurationError(
                file: place, line: nil,
                "costs \(hash.cost.text), but passwordCost says \(cost.text): hash the password at that cost")
        }
        return text
    }

    private static func totpSeed(file path: String) throws -> Secret {
        let text = String(decoding: try PrivateFile.read(path, limit: 4096, isNamed: true), as: UTF8.self)
        guard let bytes = Base32.decode(text.trimmingCharacters(in: .whitespacesAndNewlines)),
            bytes.count >= Self.seedBytes
        else {
            throw ConfigurationError(
                file: path, line: nil, "a TOTP seed is the base 32 of at least \(Self.seedBytes) bytes")
        }
        return Secret(bytes: bytes)
    }
}
