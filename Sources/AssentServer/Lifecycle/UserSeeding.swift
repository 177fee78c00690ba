public import AssentCore
import AssentEngine
import AssentOTP
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

    func seed(_ realms: [RealmConfiguration]) async throws -> [GeneratedAccount] {
        var generated: [GeneratedAccount] = []
        for realm in realms {
            for user in realm.users {
                guard try await Users(context).find(username: user.username, realm: realm.name) == nil else { continue }
                if let account = try await make(user, realm: realm.name) { generated.append(account) }
            }
        }
        return generated
    }

    private func make(_ seed: UserSeed, realm: String) async throws -> GeneratedAccount? {
        var password: Secret?
        var hash: String?
        switch seed.password {
        case .none: break
        case .generated: password = Secret(context.random.token(byteCount: 12))
        case .file(let path):
            let text = String(decoding: try PrivateFile.read(path, limit: 4096), as: UTF8.self)
            password = Secret(text.trimmingCharacters(in: .newlines))
        case .hash(let text):
            guard PasswordHash(text) != nil else {
                throw ConfigurationError(
                    file: "passwordHash of \(seed.username)", line: nil,
                    "is no hash that this version reads; it begins with $scrypt$")
            }
            hash = text
        }
        if let password { hash = try await passwords.hash(password) }
        var totpSeed: Secret?
        if seed.password == .generated { totpSeed = Secret(bytes: context.random.bytes(20)) }
        if let path = seed.totpSeedFile {
            let text = String(decoding: try PrivateFile.read(path, limit: 4096), as: UTF8.self)
            guard let bytes = Base32.decode(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw ConfigurationError(file: path, line: nil, "a TOTP seed is the base 32 of at least 16 bytes")
            }
            totpSeed = Secret(bytes: bytes)
        }
        let made = try await Users(context).create(
            username: seed.username, realm: realm, passwordHash: hash, roles: seed.roles, attributes: seed.attributes)
        guard let made else { return nil }
        if let totpSeed {
            try await OneTimePasswords(context).enrol(TOTP(secret: totpSeed), userID: made.id)
        }
        guard seed.password == .generated, let password, let totpSeed else { return nil }
        return GeneratedAccount(realm: realm, username: seed.username, password: password, totpSeed: totpSeed)
    }
}
