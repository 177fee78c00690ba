import AssentCore
import AsyncHTTPClient
import Foundation
import TestSupport
import Testing

@testable import AssentServer

/// The real `assent serve --gateway-only` as a process of its own, whose engine is another process.
final class GatewayProcess: Sendable {
    let process: WatchedProcess
    private let port: Int
    private let client: HTTPClient

    /// The origin by which clients know it, whatever its port is.
    private static let origin = "https://localhost:9555"
    private static let clientID = "edge"
    private static let secret = "edge-secret-0123456789abcdef0123456789"

    /// The text of a server's file (`ServeProcess.yaml`) that lets it ask.
    static func admitting(_ text: String) -> String {
        let addition = """

                enforcement:
                  edge: {clients: [\(clientID)], policySets: [bank], origins: ["\(origin)"]}
                clients:
                  \(clientID):
                    secretHash: \(Base64URL.encode(SHA2.sha256(secret.utf8)))
                    grantTypes: [client_credentials]
                    scopes: [enforcement]

            """
        return text.replacing("\n    clients:\n", with: addition, maxReplacements: 1)
    }

    /// Starts one whose engine is at `engine`, with a server's files in `directory`, before a service at `upstream`,
    /// and waits until it serves.
    ///
    /// - Throws: ``ProcessFailure`` when it ends before that.
    static func start(
        _ engine: String, directory: String, upstream: Int, client: HTTPClient
    ) async throws -> GatewayProcess {
        let secretFile = directory + "/edge-secret"
        if !FileManager.default.fileExists(atPath: secretFile) {
            try PrivateFile.create(secretFile, Array(secret.utf8))
        }
        let service = "http://127.0.0.1:\(upstream)"
        let text = """
            development: true
            drainSeconds: 600
            tls: {certificate: data/server.pem, privateKey: data/server.key}
            engine:
              url: \(engine)
              authorities: data/authority.pem
              realms:
                alpha: {clientID: \(clientID), secretFile: edge-secret}
            gateway:
              publicURL: \(origin)
              port: 0
              routes: [{name: bank, upstream: "\(service)", realm: alpha, policySet: bank, \(ServeProcess.timeouts)}]
            """
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/edge.yaml"))
        let process = try WatchedProcess.start(
            [try WatchedProcess.product("assent"), "serve", "--gateway-only", "--config", directory + "/edge.yaml"],
            environment: ServeProcess.patience)
        await process.waitUntilSaid(" serving")
        let words = process.errors.split(whereSeparator: \.isWhitespace)
        let name = "gatewayPort="
        guard let port = words.first(where: { $0.hasPrefix(name) }).flatMap({ Int($0.dropFirst(name.count)) }) else {
            await process.stop()
            throw ProcessFailure(description: "assent serve --gateway-only did not start: \(process.errors)")
        }
        return GatewayProcess(process: process, port: port, client: client)
    }

    private init(process: WatchedProcess, port: Int, client: HTTPClient) {
        self.process = process
        self.port = port
        self.client = client
    }

    /// One transfer, with or without the transaction that it needs.
    func transfer(session: String, transaction: String? = nil) async throws -> Answer {
        let query = transaction.map { "?_txid=\($0)" } ?? ""
        return try await client.answer(
            "POST", "https://localhost:\(port)/transfers" + query,
            ServerFixture.jsonFields + ServerFixture.session(session),
            body: Array(#"{"to":"Bob","amount":"0.01","currency":"EUR"}"#.utf8))
    }

    /// Sends so many transfers with one transaction at once, by turns at each gateway, and expects that one of them is
    /// carried out.
    static func race(_ count: Int, _ gateways: [GatewayProcess], session: String, transaction: String) async throws {
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<count {
                let gateway = gateways[index % gateways.count]
                group.addTask { try await gateway.transfer(session: session, transaction: transaction).status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.count == count && statuses.count { $0 == 201 } == 1)
        // The others know that it was used, or the engine was too busy to say so.
        #expect(statuses.allSatisfy { [201, 409, 503].contains($0) }, "\(Set(statuses))")
    }
}
