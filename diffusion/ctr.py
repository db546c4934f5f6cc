class CTR: pass
