import Assent
import AssentCore
import AssentVault
import Foundation
import Testing

@testable import AssentCLI

@Suite("The file of a secret")
struct SecretFileTests {
    private static func clientFile() throws -> ClientFile {
        let pins = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
        return ClientFile(
            server: "https://localhost:1/am", realm: "/alpha", cookieName: "session", clientID: "bank-pay",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login",
            resources: [.init(origin: "https://localhost:2", credential: "accessToken")], authority: "/tmp/ca.pem",
            pins: [.init(host: "localhost", pins: pins)])
    }

    @Test("An initial access token that other users may read registers nothing, and is taken when they may not")
    func readable() throws {
        let home = try VaultCommandTests.Home()
        let client = try home.file("app.yaml", try Self.clientFile().yaml)
        let token = try home.file("token.txt", "a-token\n")
        for mode in [0o644, 0o640, 0o604, 0o602] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: token)
            let refused = try home.run("register", "--config", client, "--token-file", token)
            #expect(
                refused.status == 78 && refused.err.contains("chmod 600"), "\(String(mode, radix: 8)): \(refused)")
        }
        for mode in [0o600, 0o400] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: token)
            let read = try SecretSource.read(file: token, descriptor: nil, "the token", isPrivate: true)
            #expect(read == Secret("a-token"), "\(String(mode, radix: 8))")
        }
    }

    @Test("The token that the client's file names is held to the same, and one that the command was given is not read")
    func named() throws {
        let home = try VaultCommandTests.Home()
        let token = try home.file("token.txt", "a-token\n")
        let registration = ClientFile.Registration(initialAccessTokenFile: token)
        let keys = SoftwareKeyProvider(unprotectedFile: home.keyFile)
        for mode in [0o644, 0o640, 0o604, 0o602] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: token)
            let refused = #expect(throws: CommandFailure.self, "\(String(mode, radix: 8))") {
                try registration.configuration(keys: keys)
            }
            #expect(refused?.status == .configuration && refused?.description.contains("chmod 600") == true)
            let given = try registration.configuration(keys: keys, token: Secret("given"))
            #expect(given.initialAccessToken == Secret("given"))
        }
        for mode in [0o600, 0o400] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: token)
            let read = try registration.configuration(keys: keys)
            #expect(read.initialAccessToken == Secret("a-token"), "\(String(mode, radix: 8))")
        }
    }
}
