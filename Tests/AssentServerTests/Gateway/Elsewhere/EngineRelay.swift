import AssentCore
import Foundation
import TestSupport

@testable import AssentServer

/// Stands between a gateway elsewhere and its engine, ends TLS on both sides, counts the calls, and loses what a test
/// says.
final class EngineRelay: Sendable {
    /// What becomes of one call.
    enum Fate: Sendable {
        /// The engine gets it, its reply is lost, and something happens before the gateway can ask again.
        case losesReplyAnd(@Sendable () async -> Void)
        /// The engine gets it, and its reply is lost.
        case losesReply
        /// The engine gets it, and instead of its reply there is this status line.
        case losesReplyTo(String)
        /// The engine does not get it, and something happens before the gateway can ask again.
        case losesRequestAnd(@Sendable () async -> Void)
        /// The engine does not get it.
        case losesRequest
        /// It is answered with this status line, and the engine does not get it.
        case answers(String)
    }

    /// Passes a call on: method, path with query, fields, body.
    typealias Engine = @Sendable (String, String, [(String, String)], [UInt8]) async throws -> Answer

    /// The last part of the path of each call, in their order.
    let calls = Watched<[String]>([])
    private let relay: TestUpstream
    private let target: Locked<Engine?>
    private let fates = Locked<[String: [Fate]]>([:])

    var port: Int { relay.port }

    /// A relay to a server, with its certificate.
    convenience init(_ engine: ServerFixture) async throws {
        try await self.init(Self.way(to: engine), directory: engine.directory)
    }

    /// A relay to a server that is a process, whose files are in `directory`, with its certificate.
    convenience init(_ engine: ServeProcess, directory: String) async throws {
        let origin = engine.server.hasSuffix("/am") ? String(engine.server.dropLast(3)) : engine.server
        try await self.init(
            { method, target, fields, body in
                try await engine.send(method, origin + target, fields, body: body)
            }, directory: directory)
    }

    private init(_ engine: @escaping Engine, directory: String) async throws {
        let credentials = try ServerCredentials.files(
            certificate: "\(directory)/data/\(ServerCredentials.chainName)",
            privateKey: "\(directory)/data/\(ServerCredentials.privateKeyName)", in: directory + "/assent.yaml")
        relay = try await TestUpstream.start(tls: credentials.tlsConfiguration())
        target = Locked(engine)
        relay.answer { [calls, fates, target] request, peer in
            let parts = request.line.split(separator: " ").map(String.init)
            guard parts.count == 3 else { return peer.close() }
            let name = parts[1].split(separator: "/").last.map(String.init) ?? ""
            calls.update { $0.append(name) }
            let fate = fates.withLock { fates in
                fates[name]?.isEmpty == false ? fates[name]?.removeFirst() : nil
            }
            Task { await Self.pass(request, parts, peer, fate, to: target.withLock { $0 }) }
        }
    }

    /// How many calls there were whose path ends so.
    func count(_ name: String) -> Int { calls.value.count { $0 == name } }

    /// The next calls whose path ends so meet these fates.
    func lose(_ name: String, _ fates: Fate...) { self.fates.withLock { $0[name, default: []] += fates } }

    /// From now on the engine is this server, or away.
    func lead(to engine: ServerFixture?) { target.withLock { $0 = engine.map(Self.way) } }

    /// The calls whose path ends so.
    func requests(_ name: String) -> [TestUpstream.Request] {
        relay.requests.filter { $0.line.split(separator: " ").dropFirst().first?.hasSuffix("/" + name) == true }
    }

    func stop() async { await relay.stop() }

    private static func way(to engine: ServerFixture) -> Engine {
        { method, target, fields, body in
            try await engine.send(method, engine.root(target), fields, body: body)
        }
    }

    private static let ownFields: Set<String> = ["host", "content-length", "connection", "transfer-encoding"]

    private static func pass(
        _ request: TestUpstream.Request, _ line: [String], _ peer: TestUpstream.Peer, _ fate: Fate?,
        to engine: Engine?
    ) async {
        guard let engine else { return peer.close() }
        switch fate {
        case .losesRequest: return peer.close()
        case .losesRequestAnd(let next):
            await next()
            return peer.close()
        case .answers(let status): return peer.answer(status)
        case .losesReply, .losesReplyAnd, .losesReplyTo, nil: break
        }
        let fields = request.head.components(separatedBy: "\r\n").dropFirst().compactMap { line -> (String, String)? in
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard parts.count == 2, !ownFields.contains(parts[0].lowercased()) else { return nil }
            return (parts[0], parts[1])
        }
        let answer = try? await engine(line[0], line[1], fields, request.body)
        if case .losesReplyAnd(let next) = fate { await next() }
        if case .losesReplyTo(let status) = fate { return peer.answer(status) }
        guard let answer, fate == nil else { return peer.close() }
        let nonce = answer["DPoP-Nonce"].map { ["DPoP-Nonce: \($0)"] } ?? []
        peer.answer("\(answer.status) Relayed", fields: ["Content-Type: application/json"] + nonce, answer.text)
    }
}
