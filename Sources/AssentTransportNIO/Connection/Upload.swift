import AssentCore
import NIOCore

/// Pulls a request's content and writes it, one piece at a time, each after the network has taken the one before.
struct Upload: Sendable {
    let connection: ConnectionHandle
    let exchange: UInt64
    let content: RequestHead.Content
    let control: CallControl?

    private static let piece = 64 << 10
    /// What is a little longer is written at once: a full chunk of payload encryption is, and the few bytes behind the
    /// 64 KiB would else wait for the network and be a record of TLS of their own.
    private static let longest = piece + 4096

    func run() async {
        do {
            switch content {
            case .none: break
            case .fixed(let body, let length): try await send(body, length: length)
            case .chunked(let body): try await send(body, length: nil)
            }
            connection.finishUpload(exchange, nil)
        } catch let error as HTTPTransportError {
            connection.finishUpload(exchange, error)
        } catch {
            // The error of the producer may quote what it read, so only its type is named.
            connection.finishUpload(
                exchange,
                HTTPTransportError(.bodyFailed, "The request's content ended with the error \(type(of: error))."))
        }
    }

    private func send(_ body: HTTPBody, length: Int?) async throws {
        var sent = 0
        var reading = body.makeAsyncIterator()
        try await control?.whenRunning()
        while let chunk = try await reading.next() {
            var rest = chunk[...]
            while !rest.isEmpty {
                try await control?.whenRunning()
                let piece = rest.count <= Self.longest ? rest : rest.prefix(Self.piece)
                rest = rest.dropFirst(piece.count)
                if let length {
                    guard piece.count <= length - sent else {
                        throw HTTPTransportError(
                            .bodyFailed, "The request's content is longer than its declared length.")
                    }
                    sent += piece.count
                    try await connection.write(exchange, ByteBuffer(bytes: piece))
                } else {
                    var buffer = ByteBuffer(string: String(piece.count, radix: 16) + "\r\n")
                    buffer.writeBytes(piece)
                    buffer.writeStaticString("\r\n")
                    try await connection.write(exchange, buffer)
                }
            }
        }
        if let length {
            guard sent == length else {
                throw HTTPTransportError(.bodyFailed, "The request's content is shorter than its declared length.")
            }
        } else {
            try await connection.write(exchange, ByteBuffer(staticString: "0\r\n\r\n"))
        }
    }
}
