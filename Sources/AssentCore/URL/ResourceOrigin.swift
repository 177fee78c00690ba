/// An origin in the form in which resources have it, read once for the requests of a door that has one.
package struct ResourceOrigin: Sendable, Hashable {
    let scheme: String
    let host: String
    let port: UInt16

    /// How long it is in a URL.
    let byteCount: Int

    /// The form of an origin.
    package init(_ origin: Origin) {
        scheme = origin.scheme
        host = origin.host.description
        port = UInt16(clamping: origin.port)
        byteCount = origin.description.utf8.count
    }
}
