import AssentCore
import AssentPayload
import Crypto

/// Sealing and opening a message of 64 MiB in frames, as it comes in pieces from a file or a connection, against
/// AES-GCM alone for the same chunks: bytes a second.
struct SealedFrameBenchmark: Benchmark {
    static let name = "sealed-frame"
    static let summary = "payload encryption's frames against plain AES-GCM of the same chunks"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let work = try FrameWork(mebibytes: setting.rounds(64, quick: 8))
        var sealing = Comparison(
            benchmark: Self.name, title: "sealing frames / plain AES-GCM, throughput", unit: "B/s", aim: .atLeast(0.85))
        var opening = Comparison(
            benchmark: Self.name, title: "opening frames / plain AES-GCM, throughput", unit: "B/s", aim: .atLeast(0.85))
        let rounds = setting.rounds(15, quick: 3)
        for round in 0...rounds {
            let (seal, plainSeal) = try Self.turns(round, work, work.seal, work.sealByHand)
            let (open, plainOpen) = try Self.turns(round, work, work.open, work.openByHand)
            // The first round warms all up.
            guard round > 0 else { continue }
            sealing.add(subject: seal, baseline: plainSeal, of: rounds)
            opening.add(subject: open, baseline: plainOpen, of: rounds)
        }
        return [sealing, opening]
    }

    /// Bytes a second of both; who is first changes with the round.
    private static func turns(
        _ round: Int, _ work: FrameWork, _ subject: () throws -> Int, _ baseline: () throws -> Int
    ) throws -> (Double, Double) {
        guard round.isMultiple(of: 2) else {
            let rate = try rate(work, subject)
            return (rate, try Self.rate(work, baseline))
        }
        let rate = try rate(work, baseline)
        return (try Self.rate(work, subject), rate)
    }

    private static func rate(_ work: FrameWork, _ body: () throws -> Int) throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        let count = try body()
        let time = (clock.now - start).inSeconds
        guard count == work.count else { throw BenchFailure("\(count) bytes in the place of \(work.count)") }
        return Double(count) / time
    }
}

/// One message in all its forms. Each function returns how many bytes of plaintext it has worked through.
struct FrameWork {
    private static let chunk = 64 << 10
    private static let tag = 16

    /// The bytes of the plaintext.
    let count: Int
    private let key: SymmetricKey
    private let head: FrameHead
    private let associated: [UInt8]
    /// The plaintext, in the pieces in which a file is read.
    private let plaintext: [[UInt8]]
    /// The message behind its head, in pieces of the same size: chunks begin and end within them.
    private let sealed: [[UInt8]]
    /// Ciphertext and tag of each chunk, sealed by hand.
    private let chunks: [[UInt8]]

    init(mebibytes: Int) throws {
        let random = SystemRandom()
        let key = SymmetricKey(size: .bits256)
        let head = FrameHead(.request, session: random.bytes(16), number: 1, random: random)
        let associated = random.bytes(64)
        let plaintext = (0..<mebibytes << 4).map { _ in random.bytes(Self.chunk) }
        var sealer = FrameSealer(head, key: key, bound: [])
        var message: [UInt8] = []
        for piece in plaintext { message += try sealer.seal(piece) }
        message += try sealer.finish()
        let rest = message.dropFirst(FrameHead.length)
        sealed = stride(from: rest.startIndex, to: rest.endIndex, by: Self.chunk).map {
            Array(rest[$0..<min($0 + Self.chunk, rest.endIndex)])
        }
        chunks = try plaintext.enumerated().map { index, piece in
            let box = try AES.GCM.seal(piece, using: key, nonce: Self.nonce(index), authenticating: associated)
            return Array(box.ciphertext) + box.tag
        }
        count = mebibytes << 20
        (self.key, self.head, self.associated, self.plaintext) = (key, head, associated, plaintext)
    }

    func seal() throws -> Int {
        var sealer = FrameSealer(head, key: key, bound: [])
        var length = 0
        for piece in plaintext { length += try sealer.seal(piece).count }
        length += try sealer.finish().count
        // What frames add: the head, and five bytes and a tag for each chunk.
        return length - FrameHead.length - plaintext.count * (5 + Self.tag)
    }

    func sealByHand() throws -> Int {
        var length = 0
        for (index, piece) in plaintext.enumerated() {
            let box = try AES.GCM.seal(piece, using: key, nonce: Self.nonce(index), authenticating: associated)
            length += box.ciphertext.count
        }
        return length
    }

    func open() throws -> Int {
        var opener = FrameOpener(head, key: key, bound: [])
        var length = 0
        for piece in sealed { length += try opener.open(piece[...]).count }
        try opener.finish()
        return length
    }

    func openByHand() throws -> Int {
        var length = 0
        for (index, chunk) in chunks.enumerated() {
            let box = try AES.GCM.SealedBox(
                nonce: Self.nonce(index), ciphertext: chunk.dropLast(Self.tag), tag: chunk.suffix(Self.tag))
            length += try AES.GCM.open(box, using: key, authenticating: associated).count
        }
        return length
    }

    private static func nonce(_ index: Int) throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(data: [0, 0, 0, 0] + withUnsafeBytes(of: UInt64(index).bigEndian) { Array($0) })
    }
}
