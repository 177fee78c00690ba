import Assent
import AssentCore
import AssentTransportNIO
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix

/// A large file down and up by `UserClient`, against the same file on the pinned transport alone, written and read by
/// hand: bytes a second. Beside it stands how much memory the SDK's transfers take at their peak, above what the
/// process has before the first.
struct TransferBenchmark: Benchmark {
    static let name = "transfer"
    static let summary = "512 MiB down and up by UserClient against the pinned transport with files by hand; memory"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("transfer")
        let files = try setting.workspace.directory("transfer/files")
        let server = try await PinnedServer(
            "client_max_body_size 0; location / { root \(files); dav_methods PUT; }", in: directory)
        defer { server.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try server.transport(on: group)
        let work = try TransferWork(
            server, assent: try await server.assent(over: transport), transport: transport, files: files,
            directory: directory, mebibytes: setting.rounds(512, quick: 64))
        let comparisons = try await measure(work)
        await transport.shutdown()
        try await group.shutdownGracefully()
        return comparisons
    }

    private func measure(_ work: TransferWork) async throws -> [Comparison] {
        var rates: [Comparison] = []
        var peaks: [Comparison] = []
        for word in ["download", "upload"] {
            rates.append(
                Comparison(
                    benchmark: Self.name, title: "\(word) of a file / the same by hand on the transport, throughput",
                    unit: "B/s", aim: .atLeast(0.95)))
            peaks.append(
                Comparison(
                    benchmark: Self.name, title: "\(word): peak of memory above idle, in MiB, to one", unit: "MiB",
                    aim: .atMost(32)))
        }
        try await work.warmUp()
        let idle = try ResidentMemory.now
        let rounds = setting.rounds(3, quick: 1)
        for round in 1...rounds {
            for (index, way) in [TransferWork.Way.down, .up].enumerated() {
                var baseline = 0.0
                if round.isMultiple(of: 2) { baseline = try await work.rate(way, isByHand: true) }
                try ResidentMemory.forgetPeak()
                let subject = try await work.rate(way, isByHand: false)
                peaks[index].add(subject: max(0, try ResidentMemory.peak - idle), baseline: 1, of: rounds)
                if !round.isMultiple(of: 2) { baseline = try await work.rate(way, isByHand: true) }
                rates[index].add(subject: subject, baseline: baseline, of: rounds)
            }
        }
        return rates + peaks
    }
}

/// The file and the ways to carry it.
private struct TransferWork {
    enum Way {
        case down
        case up
    }

    private let server: PinnedServer
    private let assent: Assent
    private let transport: NIOTransport
    private let directory: String
    private let size: Int
    private let limits = HTTPLimits(total: .seconds(600), replyBytes: 1 << 30)

    /// The file at the server, which is also the one that is sent.
    private let source: String

    init(
        _ server: PinnedServer, assent: Assent, transport: NIOTransport, files: String, directory: String,
        mebibytes: Int
    ) throws {
        (self.server, self.assent, self.transport, self.directory) = (server, assent, transport, directory)
        size = mebibytes << 20
        source = files + "/large"
        let file = try PlainFile(writing: source)
        let bytes = SystemRandom().bytes(1 << 20)
        for _ in 0..<mebibytes { try file.write(bytes) }
        try file.finish()
        let small = try PlainFile(writing: files + "/small")
        try small.write([1])
        try small.finish()
    }

    /// Makes the connection and loads what every call needs.
    func warmUp() async throws {
        for _ in 0..<20 {
            let reply = try await assent.userClient.sendAuthenticatedRequest(.get(server.origin + "/small"))
            guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
        }
    }

    /// Bytes a second.
    func rate(_ way: Way, isByHand: Bool) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        switch (way, isByHand) {
        case (.down, false): try await download()
        case (.down, true): try await downloadByHand()
        case (.up, false): try await upload()
        case (.up, true): try await uploadByHand()
        }
        let time = (clock.now - start).inSeconds
        let written = way == .down ? target : uploaded
        let facts = try FileManager.default.attributesOfItem(atPath: written)
        guard (facts[.size] as? NSNumber)?.intValue == size else { throw BenchFailure("the file is not complete") }
        try FileManager.default.removeItem(atPath: written)
        return Double(size) / time
    }

    /// Where downloads go.
    private var target: String { directory + "/downloaded" }

    /// Where the server keeps uploads.
    private var uploaded: String { directory + "/files/uploaded" }

    private func download() async throws {
        let request = ResourceRequest.get(server.origin + "/large").download(to: target)
        let reply = try await assent.userClient.sendAuthenticatedRequest(request)
        guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
    }

    private func downloadByHand() async throws {
        let reply = try await transport.send(HTTPCall(.get, url: server.origin + "/large", limits: limits))
        guard reply.status == 200 else { throw BenchFailure("status \(reply.status)") }
        let file = try PlainFile(writing: target)
        for try await chunk in reply.body { try file.write(chunk) }
        try file.finish()
    }

    private func upload() async throws {
        let request = try ResourceRequest(path: server.origin + "/uploaded", method: .put).upload(from: source)
        let reply = try await assent.userClient.sendAuthenticatedRequest(request)
        guard reply.status == 201 else { throw BenchFailure("status \(reply.status)") }
    }

    private func uploadByHand() async throws {
        let file = try PlainFile(reading: source)
        let body = HTTPBody(length: size, isReplayable: false) { { try file.read(64 << 10) } }
        let reply = try await transport.send(
            HTTPCall(.put, url: server.origin + "/uploaded", body: body, limits: limits))
        guard reply.status == 201 else { throw BenchFailure("status \(reply.status)") }
        _ = try await reply.body.collect(upTo: 1 << 20)
        file.close()
    }
}

/// A file as one reads and writes it by hand.
private struct PlainFile: Sendable {
    private let descriptor: Int32

    init(writing path: String) throws {
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BenchFailure("a file cannot be made") }
    }

    init(reading path: String) throws {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BenchFailure("a file cannot be read") }
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw BenchFailure("a file cannot be written") }
            rest = rest.dropFirst(count)
        }
    }

    /// The next bytes; `nil` at the end.
    func read(_ count: Int) throws -> [UInt8]? {
        var length = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            length = Foundation.read(descriptor, buffer.baseAddress, count)
            initialized = max(0, length)
        }
        guard length >= 0 else { throw BenchFailure("a file cannot be read") }
        return length == 0 ? nil : bytes
    }

    /// Brings what was written to the disk, as a download does.
    func finish() throws {
        guard fsync(descriptor) == 0 else { throw BenchFailure("a file cannot be synced") }
        close()
    }

    func close() { _ = Foundation.close(descriptor) }
}
