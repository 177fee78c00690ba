package import HTTPTypes

extension BinaryHTTPWriter {
    /// The beginning of a reply whose content has so many bytes, which follow in any pieces, and then ``knownEnd``.
    package static func head(_ response: HTTPResponse, length: Int) -> [UInt8] {
        // A whole reply without content ends with its length and with no trailers: one byte each.
        Array(self.response(response, content: []).dropLast(2)) + VariableInteger.encode(length)
    }

    /// What follows a content of known length: no trailers.
    package static let knownEnd: [UInt8] = [0]
}
