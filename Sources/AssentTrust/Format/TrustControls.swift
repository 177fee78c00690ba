import AssentCore
package import AssentSigningProtocol

/// What happens when a probe of the app finds something.
package struct TrustControls: ShapedPart, Hashable {
    package let debugger: TrustControl
    package let rooted: TrustControl
    package let preload: TrustControl

    package static let shape = MessageShape<Self>(Self.init) {
        Member("debugger", \.debugger)
        Member("rooted", \.rooted)
        Member("preload", \.preload)
    }
}

/// What happens when one probe finds something.
package enum TrustControl: String, MemberValue, Hashable {
    /// No call leaves.
    case refuse
    /// The server is told.
    case report
    /// It is not looked for.
    case off
}
