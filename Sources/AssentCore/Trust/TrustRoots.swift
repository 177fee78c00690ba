/// The certificate authorities that a server's chain must end in.
///
/// Only a description: the transport reads and checks the certificates when it is made.
public enum TrustRoots: Sendable, Hashable {
    /// Those that the Linux distribution installs. On Apple systems this set is empty, so that nothing is trusted.
    case system

    /// These and no others; each element is one certificate in DER, or any number of them in PEM.
    case certificates([[UInt8]])

    /// Those in this PEM file and no others.
    case pemFile(String)
}
