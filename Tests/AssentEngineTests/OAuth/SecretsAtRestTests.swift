import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What the database must not be able to tell")
struct SecretsAtRestTests {
    private func content(_ fixture: ProviderFixture) throws -> [UInt8] {
        try FileManager.default.contentsOfDirectory(at: fixture.url, includingPropertiesForKeys: nil)
            .flatMap { [UInt8](try Data(contentsOf: $0)) }
    }

    /// The secret as text and, where it is base64url, as the bytes that it stands for; both also as pieces of 12 bytes.
    private func isFound(_ secret: Secret, in content: [UInt8]) -> Bool {
        var forms = [secret.revealBytes()]
        if let bytes = Base64URL.decode(secret.reveal()) { forms.append(bytes) }
        forms += forms.map { Array(Hex.encode($0).utf8) }
        let data = Data(content)
        return forms.contains { form in
            stride(from: 0, through: max(form.count - 12, 0), by: 12).contains {
                data.range(of: Data(form[$0..<min($0 + 12, form.count)])) != nil
            }
        }
    }

    @Test(
        "No code, token, verifier, secret or private key is in the database or its log, and a planted one is found",
        .enabled(if: !TestDatabase.isPostgreSQL, "it looks into a SQLite file"))
    func search() async throws {
        let fixture = try await ProviderFixture()
        var secrets: [Secret] = [
            fixture.sessionToken, Secret(ProviderFixture.verifier), Secret(ProviderFixture.secret),
        ]
        let unused = try await fixture.code()
        let code = try await fixture.code()
        secrets += [Secret(unused), Secret(code), Secret(RefreshTests.attempt)]
        var reply = try await fixture.exchange(code)
        for round in 0..<3 {
            secrets += [reply.accessToken, reply.refreshToken, reply.idToken].compactMap { $0 }
            reply = try await fixture.refresh(reply.refreshToken, attempt: round == 1 ? nil : RefreshTests.attempt)
        }
        secrets += [reply.accessToken, reply.refreshToken, reply.idToken].compactMap { $0 }
        try await fixture.grants.revoke(
            try ProviderFixture.parameters(["client_id": "bank-app", "token": reply.accessToken.reveal()]))
        for row in try await fixture.database.run(.read("SELECT * FROM server_keys")) {
            secrets.append(
                try fixture.context.masterKey.open(
                    try row.blob("sealed_key"), for: .serverKey, context: try row.text("kid")))
        }
        #expect(secrets.count == 20)
        let found = try content(fixture)
        #expect(found.count > 10_000)
        // The first two parts of a JWT are not secret, and `kid` is in the database: only signatures are searched for.
        for secret in secrets {
            let parts = secret.reveal().split(separator: ".")
            let essence = parts.count == 3 ? Secret(String(parts[2])) : secret
            #expect(!isFound(essence, in: found))
        }

        let planted = Secret(SystemRandom().token())
        _ = try await fixture.database.run(
            SQLStatement(
                "INSERT INTO attempts (counter, window_start, count) VALUES (\("leak:\(planted.reveal())"), 0, 0)"))
        #expect(isFound(planted, in: try content(fixture)))
    }

    @Test("A sealed successor that was moved to another token's row does not open")
    func movedSuccessor() async throws {
        let fixture = try await ProviderFixture()
        let mine = try await fixture.tokens()
        let theirs = try await fixture.tokens()
        _ = try await fixture.refresh(mine.refreshToken, attempt: RefreshTests.attempt)
        _ = try await fixture.refresh(theirs.refreshToken, attempt: RefreshTests.attempt)
        let ids = try [mine, theirs].map { TokenHash.of(try #require($0.refreshToken)) }
        _ = try await fixture.database.run(
            SQLStatement(
                """
                UPDATE refresh_tokens
                SET sealed_successor = (SELECT sealed_successor FROM refresh_tokens WHERE id = \(ids[1]))
                WHERE id = \(ids[0])
                """, expecting: .exactly(1)))
        await #expect(throws: EngineError.self) {
            try await fixture.refresh(mine.refreshToken, attempt: RefreshTests.attempt)
        }
    }
}
