@_exported public import AssentSigningProtocol
