import AssentCore
import Foundation
import NIOCore
import NIOSSL

/// What ends TLS on the way to the gateway with the gateway's own certificate, as a balancer or an inspecting proxy
/// does: pins do not keep it out. It reads all that passes, and can change it.
final class ReadingProxy: Sendable {
    /// Which way something goes.
    enum Direction: Sendable { case request, reply }

    /// Of a message that is sealed, what lies here is sealed content, and never a length or a head.
    private static let changedByte = 60

    /// What it keeps at most.
    private static let limit = 1 << 20

    private let inside: NIOSSLContext
    private let outside: NIOSSLContext
    private let passed = Locked<[UInt8]>([])
    private let changes = Locked<Direction?>(nil)

    /// - Parameters:
    ///   - certificates: the PEM file of the gateway's chain.
    ///   - privateKey: the PEM file of its key.
    /// - Throws: NIOSSL's errors for files that are not these.
    init(certificates: String, privateKey: String) throws {
        let chain = try NIOSSLCertificate.fromPEMFile(certificates).map { NIOSSLCertificateSource.certificate($0) }
        let key = NIOSSLPrivateKeySource.privateKey(try NIOSSLPrivateKey(file: privateKey, format: .pem))
        inside = try NIOSSLContext(
            configuration: .makeServerConfiguration(certificateChain: chain, privateKey: key))
        var client = TLSConfiguration.makeClientConfiguration()
        // It stands beside the gateway: nobody is between them.
        client.certificateVerification = .none
        outside = try NIOSSLContext(configuration: client)
    }

    /// Whether one of the bytes' sequences has passed since ``forget()``, either way.
    func hasRead(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return passed.withLock { $0.firstRange(of: bytes) != nil }
    }

    func forget() { passed.withLock { $0 = [] } }

    /// Changes one bit of the content of the next message that goes this way.
    func changeNext(_ direction: Direction) { changes.withLock { $0 = direction } }

    /// Ends TLS of a connection that has just begun.
    func add(to inbound: any Channel, before outbound: any Channel) throws {
        try inbound.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: inside))
        try outbound.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: outside, serverHostname: "localhost"))
    }

    /// What goes on of these bytes.
    func pass(_ bytes: ByteBuffer, _ direction: Direction) -> ByteBuffer {
        var bytes = bytes
        passed.withLock { kept in
            kept += bytes.readableBytesView.prefix(Self.limit - kept.count)
        }
        let view = bytes.readableBytesView
        let head = view.firstRange(of: Array("\r\n\r\n".utf8))
        let index = (head?.upperBound ?? view.startIndex) + Self.changedByte
        guard index < view.endIndex else { return bytes }
        let isChanged = changes.withLock { armed in
            guard armed == direction else { return false }
            armed = nil
            return true
        }
        if isChanged { bytes.setInteger(view[index] ^ 1, at: index) }
        return bytes
    }
}
