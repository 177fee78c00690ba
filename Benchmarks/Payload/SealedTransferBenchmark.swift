import Assent
import AssentCore
import AssentPeers
import AssentTransportNIO
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix

/// 64 MiB down and up through the gateway, sealed, against the same plain, and against the same plain with AES-GCM of
/// the same bytes by hand before and behind: bytes a second. The client sends from memory and drops what
/// it gets; nginx writes what is sent to it to a file.
struct SealedTransferBenchmark: Benchmark {
    static let name = "sealed-transfer"
    static let summary = "64 MiB through the gateway sealed against the same plain, and against AES-GCM and plain"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private enum Way: String, CaseIterable { case down = "download", up = "upload" }

    private static let piece = 64 << 10
    private static let limits = HTTPLimits(total: .seconds(600), replyBytes: 1 << 30)

    private var mebibytes: Int { setting.rounds(64, quick: 8) }

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("sealed-transfer")
        let files = try setting.workspace.directory("sealed-transfer/open")
        let bytes = SystemRandom().bytes(mebibytes << 20)
        try Data(bytes).write(to: URL(fileURLWithPath: files + "/large"))
        let ports = try await Nginx.freePorts(1)
        guard let port = ports.first else { throw BenchFailure("no free port") }
        let upstream = try await Nginx.start(
            """
            client_max_body_size 0;
            server { listen 127.0.0.1:\(port); location / { root \(directory); dav_methods PUT; } }
            """, in: directory, ports: ports)
        defer { upstream.stop() }
        let gateway = try BenchServer(
            in: try setting.workspace.directory("sealed-transfer/gateway"), upstream: "http://127.0.0.1:\(port)")
        defer { gateway.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let network = try gateway.transport(on: group)
        let comparisons = try await measure(gateway, plain: network, bytes)
        await network.shutdown()
        try await group.shutdownGracefully()
        return comparisons
    }

    private func measure(
        _ gateway: BenchServer, plain: NIOTransport, _ bytes: [UInt8]
    ) async throws -> [Comparison] {
        let sealing = try gateway.sealing(plain)
        let work = try FrameWork(mebibytes: mebibytes)
        var rates = Way.allCases.map { way in
            Comparison(
                benchmark: Self.name, title: "\(way.rawValue) of 64 MiB sealed / plain, throughput", unit: "B/s",
                aim: .atLeast(0.7))
        }
        var sums = Way.allCases.map { way in
            Comparison(
                benchmark: Self.name, title: "\(way.rawValue) sealed / AES-GCM of the same bytes and plain, throughput",
                unit: "B/s", aim: .atLeast(0.85))
        }
        let rounds = setting.rounds(9, quick: 2)
        for round in 0...rounds {
            for (index, way) in Way.allCases.enumerated() {
                let isFirst = round.isMultiple(of: 2)
                let order: [any HTTPTransport] = isFirst ? [sealing, plain] : [plain, sealing]
                let first = try await seconds(way, order[0], gateway, bytes)
                let second = try await seconds(way, order[1], gateway, bytes)
                let (sealed, bare) = isFirst ? (first, second) : (second, first)
                let byHand = try Self.time { _ = try (work.sealByHand(), work.openByHand()) }
                // The first round warms all up.
                guard round > 0 else { continue }
                let size = Double(bytes.count)
                rates[index].add(subject: size / sealed, baseline: size / bare, of: rounds)
                sums[index].add(subject: size / sealed, baseline: size / (bare + byHand), of: rounds)
            }
        }
        return rates + sums
    }

    private static func time(_ body: () throws -> Void) rethrows -> Double {
        try ContinuousClock().measure { try body() }.inSeconds
    }

    private func seconds(
        _ way: Way, _ transport: any HTTPTransport, _ gateway: BenchServer, _ bytes: [UInt8]
    ) async throws -> Double {
        let start = ContinuousClock.now
        switch way {
        case .down:
            let reply = try await transport.send(
                HTTPCall(.get, url: gateway.gateway + "/open/large", limits: Self.limits))
            guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
            var count = 0
            for try await chunk in reply.body { count += chunk.count }
            guard count == bytes.count else { throw BenchFailure("\(count) bytes in the place of \(bytes.count)") }
        case .up:
            let body = HTTPBody(length: bytes.count, isReplayable: false) {
                let sent = Locked(0)
                return {
                    sent.withLock { sent -> [UInt8]? in
                        guard sent < bytes.count else { return nil }
                        let end = min(sent + Self.piece, bytes.count)
                        defer { sent = end }
                        return Array(bytes[sent..<end])
                    }
                }
            }
            let reply = try await transport.send(
                HTTPCall(
                    .put, url: gateway.gateway + "/open/uploaded",
                    headerFields: [.contentType: "application/octet-stream"], body: body, limits: Self.limits))
            guard [201, 204].contains(reply.status) else { throw BenchFailure("status \(reply.status)") }
            _ = try await reply.body.collect(upTo: 1 << 20)
        }
        return (ContinuousClock.now - start).inSeconds
    }
}
